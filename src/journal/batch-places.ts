// Where batches stand in their journal: the sequence of the record that holds each. The two differ by the dead records
// before a batch, and by batches whose records were lost for good. Kept as runs of batches that follow one another, so
// that it is as small as the journal is orderly. And, of the newest that this process met, what they are.

import { type BatchIndex, batchIndex } from "../ids.ts";
import { limits } from "../limits.ts";
import { BatchHashes } from "./batch-hashes.ts";

/** `count` batches from `idx` on, in as many records from `seq` on. */
export type Run = readonly [idx: number, seq: number, count: number];

interface OpenRun {
  readonly idx: number;
  readonly seq: number;
  count: number;
}

export class BatchPlaces {
  /** Ascending, by idx and by seq. */
  readonly #runs: OpenRun[];
  readonly #hashes = new BatchHashes();
  /** Where the journal ended last, should it have lost what stood behind. */
  #endSeq = Number.POSITIVE_INFINITY;

  /** @param runs ascending, as `runs` gave them */
  constructor(runs: readonly Run[] = []) {
    this.#runs = runs.map(([idx, seq, count]) => ({ idx, seq, count }));
  }

  get runs(): readonly Run[] {
    return this.#runs.map(({ idx, seq, count }) => [idx, seq, count]);
  }

  /** The next batch stands behind the record `seq`, and perhaps dead records behind that: what stood there was lost. It
   *  is known until then, for whoever asks where it stood. */
  goOnBehind(seq: number): void {
    this.#endSeq = seq;
  }

  /** The record `seq` holds the batch that stood there: if the journal was said to end right before it, it did not, for
   *  its server knew less. To be told in the order of the records. */
  stillStands(seq: number): void {
    if (seq === this.#endSeq + 1) this.#endSeq = seq;
  }

  /** Takes note of a batch behind all others. What stood in records from `seq` on was lost. Of a journal with more
   *  interruptions than `limits.journalRunsMax` the oldest runs are forgotten. */
  add(idx: BatchIndex, seq: number, hash: string): void {
    this.#forgetFrom(Math.min(seq, this.#endSeq + 1));
    this.#endSeq = Number.POSITIVE_INFINITY;
    this.#hashes.add(idx, hash);
    const last = this.#runs.at(-1);
    if (last !== undefined && idx === last.idx + last.count && seq === last.seq + last.count) {
      last.count += 1;
      return;
    }
    this.#runs.push({ idx, seq, count: 1 });
    if (this.#runs.length > limits.journalRunsMax) this.#runs.shift();
  }

  /** The sequence of a batch's record, or undefined when it is not known where it stands, or ever stood. */
  seqOf(idx: BatchIndex): number | undefined {
    const run = this.#lastWhere((each) => each.idx <= idx);
    return run === undefined || idx >= run.idx + run.count ? undefined : run.seq + (idx - run.idx);
  }

  /** Whether the batch has that hash; undefined where it is not known, as of what stands before a snapshot. */
  isBatch(idx: BatchIndex, hash: string): boolean | undefined {
    return this.#hashes.has(idx, hash);
  }

  /** The batch in a record, or undefined when the record is dead or not known. */
  idxAt(seq: number): BatchIndex | undefined {
    const run = this.#lastWhere((each) => each.seq <= seq);
    return run === undefined || seq >= run.seq + run.count
      ? undefined
      : batchIndex(run.idx + (seq - run.seq));
  }

  /** The last batch in a record at or before `seq`; undefined when there is none. */
  lastUntil(seq: number): BatchIndex | undefined {
    const run = this.#lastWhere((each) => each.seq <= seq);
    return run === undefined ? undefined : batchIndex(run.idx + Math.min(seq - run.seq, run.count - 1));
  }

  /** The first batch in a record at or behind `seq`; undefined when there is none. */
  firstFrom(seq: number): BatchIndex | undefined {
    const run = this.#runs.find((each) => each.seq + each.count > seq);
    return run === undefined ? undefined : batchIndex(run.idx + Math.max(0, seq - run.seq));
  }

  /** The batch behind the newest of those that stand nowhere any more, where others stand before them; undefined where
   *  none is missing so. */
  get firstBehindGap(): BatchIndex | undefined {
    const run = this.#runs.findLast(({ idx }, nth) => {
      const before = this.#runs[nth - 1];
      return before !== undefined && idx > before.idx + before.count;
    });
    return run && batchIndex(run.idx);
  }

  #forgetFrom(seq: number): void {
    for (
      let last = this.#runs.at(-1);
      last !== undefined && last.seq + last.count > seq;
      last = this.#runs.at(-1)
    ) {
      last.count = seq - last.seq;
      if (last.count > 0) return;
      this.#runs.pop();
    }
  }

  /** The newest run of which a claim holds that holds of all before it. */
  #lastWhere(holds: (run: OpenRun) => boolean): OpenRun | undefined {
    let low = 0;
    let high = this.#runs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(this.#runs[middle] as OpenRun)) low = middle + 1;
      else high = middle;
    }
    return this.#runs[low - 1];
  }
}
