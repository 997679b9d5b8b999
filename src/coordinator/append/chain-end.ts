// The end of what a term has committed: the last batch, which the next one continues, and the place in the journal
// behind which that is expected. Dead records and lost places may lie between the two.

import type { BatchIndex } from "../../ids.ts";
import { hashOf } from "../../journal/batch.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { ChainPosition, ChainTail } from "../../journal/replay.ts";
import type { PendingBatch } from "./sends.ts";

export class ChainEnd {
  readonly #recent: RecentRecords;
  #tail: ChainTail;
  readonly #sinceTold: ChainTail[];
  #lastSeq: number;
  /** Places behind it that count as dead, of which nothing can be read. */
  #lostPlaces = 0;

  /** @param position up to where the journal was read
   *  @param recent what stands in the journal up to there; goes on with what is committed */
  constructor(position: ChainPosition, recent: RecentRecords) {
    this.#recent = recent;
    this.#tail = position;
    this.#sinceTold = [position];
    this.#lastSeq = position.seq;
  }

  /** The last batch that was committed. */
  get tail(): ChainTail {
    return this.#tail;
  }

  /** From the last batch on that somebody may have been told of, oldest first. */
  get sinceTold(): readonly ChainTail[] {
    return this.#sinceTold;
  }

  /** The last one, as it stood in the journal, while that is held. */
  get tailRecord(): JournalRecord | undefined {
    return this.#recent.findLast(({ bytes }) => hashOf(bytes) === this.#tail.hash);
  }

  /** Of the last committed batch's record, or of a dead one behind it. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Behind which place the next append is expected. */
  get endSeq(): number {
    return this.#lastSeq + this.#lostPlaces;
  }

  /** The next batch is committed, stored at `seq`. */
  stored(batch: PendingBatch, seq: number, monotonicMs: number): void {
    this.goOnBehind(seq);
    this.#recent.add({ seq, bytes: batch.bytes }, monotonicMs);
    this.continued(batch);
  }

  /** The next batch is committed, wherever it stands. */
  continued({ idx, term, hash, journal }: PendingBatch): void {
    this.#tail = { idx, term, hash, journal };
    this.#sinceTold.push(this.#tail);
  }

  /** Of a batch that was committed somebody may have been told. */
  told(idx: BatchIndex): void {
    const firstUntold = this.#sinceTold.findIndex((each) => each.idx >= idx);
    if (firstUntold > 0) this.#sinceTold.splice(0, firstUntold);
  }

  /** A record was read that everybody skips. */
  skipped(record: JournalRecord, monotonicMs: number): void {
    this.goOnBehind(record.seq);
    this.#recent.add(record, monotonicMs, { isDead: true });
  }

  /** All places up to `seq` are dead, though nothing can be read there. */
  lostUntil(seq: number): void {
    this.#lostPlaces = seq - this.#lastSeq;
  }

  goOnBehind(seq: number): void {
    this.#lastSeq = seq;
    this.#lostPlaces = 0;
  }

  /** What was read behind `seq` stands there no more. */
  goBackTo(seq: number): void {
    this.goOnBehind(seq);
    this.#recent.forgetBehind(seq);
  }
}
