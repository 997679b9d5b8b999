// What the newest batches of a line were, for whoever must know whether a record is one of them after its bytes were
// dropped (recent-records.ts): the beginning of each one's hash, which no two share by chance. In memory alone.

import type { BatchIndex } from "../ids.ts";
import { limits } from "../limits.ts";

/** Of a hash, what a number holds exactly. */
const BYTES = 6;
const BASE64_LENGTH = 8;

export class BatchHashes {
  /** Of batches that follow one another. */
  #hashes: number[] = [];
  #firstIdx = 1;

  /** Takes note of a batch behind all others. */
  add(idx: BatchIndex, hash: string): void {
    if (idx !== this.#firstIdx + this.#hashes.length) this.#beginAt(idx);
    this.#hashes.push(shortened(hash));
    if (this.#hashes.length < 2 * limits.batchHashesMin) return;
    this.#hashes = this.#hashes.slice(limits.batchHashesMin);
    this.#firstIdx += limits.batchHashesMin;
  }

  /** Whether the batch `idx` had that hash; undefined where it is not known. */
  has(idx: BatchIndex, hash: string): boolean | undefined {
    const known = this.#hashes[idx - this.#firstIdx];
    return known === undefined ? undefined : known === shortened(hash);
  }

  #beginAt(idx: BatchIndex): void {
    this.#hashes = [];
    this.#firstIdx = idx;
  }
}

function shortened(hash: string): number {
  return Buffer.from(hash.slice(0, BASE64_LENGTH), "base64url").readUIntBE(0, BYTES);
}
