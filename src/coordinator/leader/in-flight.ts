// The batches in flight: decided and part of the state, not committed. Each is held with all that leaves after its
// commit. Not here: how batches get into the segment (writer.ts), and commits (commits.ts).

import type { Turn } from "../../core/step.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../../ids.ts";
import { type ChainTail, encodeBatch, eventsIn, hashOf } from "../../journal/records.ts";
import type { Commit, InboxEntry } from "../../requests/inbox.ts";
import type { PendingBatch } from "./writer.ts";

/** A turn with all that leaves after its commit. */
export interface Held {
  readonly turn: Turn;
  readonly at: Instant;
  readonly entries: InboxEntry[];
}

/** A turn in a batch. */
export interface HeldBatch extends Held {
  /** The events' JSON as in the batch, joined by commas. */
  readonly eventsJson: Uint8Array;
}

export class InFlight {
  /** Id of the writer's session. */
  readonly #session: string;
  /** Oldest first. */
  readonly #held: HeldBatch[] = [];
  /** Index and hash of the newest batch. */
  #tail: ChainTail;
  #committed: ChainTail;
  #term: Term;

  /** @param tail the newest committed batch · @param term the term of the next batches */
  constructor(session: string, tail: ChainTail, term: Term) {
    this.#session = session;
    this.#tail = tail;
    this.#committed = tail;
    this.#term = term;
  }

  get term(): Term {
    return this.#term;
  }

  /** The newest batch, committed or not. */
  get tail(): ChainTail {
    return this.#tail;
  }

  /** The newest committed batch. */
  get committed(): ChainTail {
    return this.#committed;
  }

  /** Index of the next batch. */
  get nextIdx(): BatchIndex {
    return batchIndex(this.#tail.idx + 1);
  }

  get newest(): HeldBatch | undefined {
    return this.#held.at(-1);
  }

  /** Adds a turn behind the others. @returns the batch to append */
  add(held: Held): PendingBatch {
    const { journal, hash: prev } = this.#tail;
    const idx = this.nextIdx;
    const term = this.#term;
    const { turn, at, entries } = held;
    const { eventsJson } = turn;
    const bytes = encodeBatch({ journal, session: this.#session, term, idx, prev, at }, eventsJson);
    const hash = hashOf(bytes);
    this.#tail = { journal, term, idx, hash };
    // Not by spreading: V8 adds the last field on a slow path.
    this.#held.push({ turn, at, entries, eventsJson: eventsIn(bytes, eventsJson.length) });
    return { term, idx, bytes, hash };
  }

  /** Takes the oldest batch after its commit. @returns undefined if none is in flight, which is a bug */
  take({ term, idx, hash }: Pick<PendingBatch, "term" | "idx" | "hash">): HeldBatch | undefined {
    const held = this.#held.shift();
    if (held !== undefined) this.#committed = { journal: this.#tail.journal, term, idx, hash };
    return held;
  }

  /** Takes all: a new segment begins with a base that contains and so commits them.
   *  @returns the batches, oldest first */
  takeAll(term: Term): readonly HeldBatch[] {
    this.#committed = this.#tail;
    this.#term = term;
    return this.#held.splice(0);
  }

  /** Where answers of the newest committed batch stand. */
  get commit(): Commit {
    return { term: this.#committed.term, idx: this.#committed.idx };
  }
}
