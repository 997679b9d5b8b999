// The batches of a term on their way into the journal, oldest first: what is expected where, and which answer to which
// sending still counts.
//
// The rule: a batch once sent is never re-cut. What is sent again is sent alone, as the oldest, and those behind it
// when it is committed: where another record stands in its place, the next one must not land behind that. Not here:
// what follows from an answer (committer.ts).

import type { Clock } from "../../clock.ts";
import type { BatchIndex, Term } from "../../ids.ts";
import type { AppendOutcome, Journal } from "../../journal/journal.ts";
import { isSameBytes } from "../../journal/recent-records.ts";

/** A batch on its way into the journal. */
export interface PendingBatch {
  readonly journal: string;
  readonly idx: BatchIndex;
  readonly term: Term;
  readonly bytes: Uint8Array;
  /** Of `bytes`; the next batch's `prev`. */
  readonly hash: string;
  /** Whether it is the batch that starts its term: losing its place to a rival is losing the election. */
  readonly startsTerm: boolean;
}

/** A batch in flight, sent or held back. */
export interface SentBatch {
  readonly batch: PendingBatch;
  expectedSeq: number;
  sentMonotonicMs: number;
  /** When it was sent for the first time: what is found stored may have been stored since. */
  firstSentMonotonicMs: number | undefined;
  storedSeq: number | undefined;
  /** Heard while an earlier batch was not yet settled; resolved once this one is the oldest. */
  unsettled: AppendOutcome | undefined;
  /** Bumped when sent again or held back, so that answers to earlier sends are told apart. */
  round: number;
  /** How often it was sent. */
  sends: number;
  /** Not sent, or not again, until the one before is committed: what that one met, this one might not. */
  isHeldBack: boolean;
  /** Sent again: what stands before it is to be looked at before it is committed. */
  isUnproven: boolean;
}

export interface SendsDeps {
  readonly journal: Pick<Journal, "append">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The answer to the last time that a batch was sent. */
  readonly heard: (entry: SentBatch, outcome: AppendOutcome) => void;
  /** An append ended with an error instead of an outcome. */
  readonly failed: (cause: unknown) => void;
}

export class Sends {
  readonly #deps: SendsDeps;
  readonly #entries: SentBatch[] = [];

  constructor(deps: SendsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#entries.length;
  }

  get batches(): readonly PendingBatch[] {
    return this.#entries.map(({ batch }) => batch);
  }

  get oldest(): SentBatch | undefined {
    return this.#entries[0];
  }

  get newest(): SentBatch | undefined {
    return this.#entries.at(-1);
  }

  /** Whether a batch of these bytes is in flight. */
  has(bytes: Uint8Array): boolean {
    return this.#entries.some(({ batch }) => isSameBytes(batch.bytes, bytes));
  }

  /** Puts a batch behind the others, held back. @param endSeq behind which place the oldest is expected */
  add(batch: PendingBatch, endSeq: number): SentBatch {
    const entry: SentBatch = {
      batch,
      expectedSeq: endSeq + this.#entries.length,
      sentMonotonicMs: 0,
      firstSentMonotonicMs: undefined,
      storedSeq: undefined,
      unsettled: undefined,
      round: 0,
      sends: 0,
      isHeldBack: true,
      isUnproven: false,
    };
    this.#entries.push(entry);
    return entry;
  }

  /** Whether a batch waits for the one before it: that one was not sent yet, or was sent again. */
  mustFollow(entry: SentBatch): boolean {
    const { oldest } = this;
    return oldest !== undefined && oldest !== entry && (oldest.isHeldBack || oldest.sends > 1);
  }

  send(entry: SentBatch): void {
    const { journal, clock, heard, failed } = this.#deps;
    entry.isHeldBack = false;
    entry.round += 1;
    entry.sends += 1;
    entry.sentMonotonicMs = clock.monotonicMs();
    entry.firstSentMonotonicMs ??= entry.sentMonotonicMs;
    const { round } = entry;
    journal.append(entry.batch.bytes, entry.expectedSeq).then((outcome) => {
      if (entry.round === round) heard(entry, outcome);
    }, failed);
  }

  /** Sends the oldest again, alone. @param endSeq behind which place it is expected now */
  sendOldestAgain(endSeq: number): void {
    this.holdBack(endSeq);
    if (this.oldest !== undefined) this.send(this.oldest);
  }

  /** What was heard of them is forgotten. @param endSeq behind which place the oldest is expected now */
  holdBack(endSeq: number): void {
    for (const [place, entry] of this.#entries.entries()) {
      entry.expectedSeq = endSeq + place;
      entry.storedSeq = undefined;
      entry.unsettled = undefined;
      entry.round += 1;
      entry.isHeldBack = true;
      entry.isUnproven = true;
    }
  }

  /** The oldest is committed. */
  dropOldest(): void {
    this.#entries.shift();
  }

  /** All are durable otherwise. @returns their batches, the oldest first */
  takeAll(): readonly PendingBatch[] {
    return this.#entries.splice(0).map(({ batch }) => batch);
  }
}
