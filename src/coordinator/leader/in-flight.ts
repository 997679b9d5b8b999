// The newest part of a term's chain: what the state contains and the journal may not, each batch with all that is held
// back until it is committed. Not here: how it gets into the journal (committer.ts), and what is done then
// (commits.ts).

import type { Turn } from "../../core/step.ts";
import { type BatchIndex, batchIndex, type Instant } from "../../ids.ts";
import { encodeBatch, hashOf } from "../../journal/batch.ts";
import type { ChainTail, Folded, Replay } from "../../journal/replay.ts";
import type { EventType } from "../../state/event.ts";
import type { PendingBatch } from "../append/sends.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";

/** A turn, and what happens when its batch is committed. */
export interface Held {
  readonly turn: Turn;
  readonly at: Instant;
  readonly entries: InboxEntry[];
}

export class InFlight {
  readonly #replay: Replay;
  /** Oldest first. */
  readonly #held: Held[] = [];
  #tail: ChainTail;
  #committed: Commit;
  /** Of the last committed batch. */
  #lastEventType: EventType = "TermStarted";

  /** @param replay up to and with the term's own `TermStarted` */
  constructor(replay: Replay) {
    this.#replay = replay;
    this.#tail = replay.position;
    this.#committed = { term: replay.position.term, idx: replay.position.idx };
  }

  /** The identity of the journal. */
  get journalId(): string {
    return this.#tail.journal;
  }

  /** Up to where the journal is committed. */
  get committed(): Commit {
    return this.#committed;
  }

  /** Of the next batch. */
  get nextIdx(): BatchIndex {
    return batchIndex(this.#tail.idx + 1);
  }

  get newest(): Held | undefined {
    return this.#held.at(-1);
  }

  /** Whether one of them ends the term. */
  get hasTermEnd(): boolean {
    return this.#held.some(endsTerm);
  }

  /** Adds a turn, behind the others. @returns its batch, to be appended */
  add(held: Held): PendingBatch {
    const { journal, hash: prev, term } = this.#tail;
    const idx = this.nextIdx;
    const events = held.turn.recorded.map(({ json }) => json);
    const bytes = encodeBatch({ journal, term, idx, prev, at: held.at }, events);
    const hash = hashOf(bytes);
    this.#tail = { journal, term, idx, hash };
    this.#held.push(held);
    return { journal, term, idx, bytes, hash, startsTerm: false };
  }

  /** Takes the oldest, which is committed. @returns undefined, which is a bug, when there was none */
  take(committed: Commit): Held | undefined {
    const held = this.#held.shift();
    if (held === undefined) return undefined;
    this.#committed = { term: committed.term, idx: committed.idx };
    this.#lastEventType = held.turn.recorded.at(-1)?.event.type ?? this.#lastEventType;
    return held;
  }

  /** The journal up to the newest batch, to go on behind the record `seq`. */
  folded(seq: number): Folded {
    const { state, places, deadRecords, alienRecords } = this.#replay;
    const position = { ...this.#tail, seq };
    return { state, position, lastEventType: this.#lastEventType, places, deadRecords, alienRecords };
  }
}

export function endsTerm({ turn }: Held): boolean {
  return turn.recorded.some(({ event }) => event.type === "TermEnded");
}
