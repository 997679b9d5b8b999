// Hashes of the newest batches of a log, to compare two copies of it. Bounded: of older batches nothing is known.

import { limits } from "../limits.ts";

export class RecentHashes {
  /** Of the oldest batch kept. */
  #firstIdx = 0;
  #hashes: string[] = [];

  /** The next batch of the log; another one begins anew. */
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

  /** Undefined when it is not known. */
  at(idx: number): string | undefined {
    return idx < this.#firstIdx ? undefined : this.#hashes[idx - this.#firstIdx];
  }

  /** Up to and with a batch, newest last, at most `count`. */
  upTo(idx: number, count: number): readonly string[] {
    const end = Math.max(0, idx + 1 - this.#firstIdx);
    return this.#hashes.slice(Math.max(0, end - count), end);
  }
}
