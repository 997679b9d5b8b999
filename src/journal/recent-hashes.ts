// Hashes of a log's newest batches, to compare a local log with the stored log. Bounded: hashes of older batches are
// forgotten.

import { limits } from "../limits.ts";

export class RecentHashes {
  /** Index of the oldest batch kept. */
  #firstIdx = 0;
  #hashes: string[] = [];

  /** Adds the next batch of the log. A batch with a different index clears the list first. */
  add(idx: number, hash: string): void {
    if (idx !== this.#firstIdx + this.#hashes.length) {
      this.#firstIdx = idx;
      this.#hashes = [];
    }
    this.#hashes.push(hash);
    if (this.#hashes.length < 2 * limits.recentHashesMax) return;
    this.#hashes = this.#hashes.slice(-limits.recentHashesMax);
    this.#firstIdx = idx + 1 - this.#hashes.length;
  }

  /** Undefined if unknown. */
  at(idx: number): string | undefined {
    return idx < this.#firstIdx ? undefined : this.#hashes[idx - this.#firstIdx];
  }

  /** Up to and with a batch, newest last, at most `count`. */
  upTo(idx: number, count: number): readonly string[] {
    const end = Math.max(0, idx + 1 - this.#firstIdx);
    return this.#hashes.slice(Math.max(0, end - count), end);
  }
}
