// A digest of lines that does not depend on their order: two states are equal if their snapshots have the same lines.

import { hash } from "node:crypto";

const WORDS = 8;

export class LineDigest {
  /** The sum of the lines' SHA-256, word by word. */
  readonly #sums = new Uint32Array(WORDS);

  add(line: string): void {
    const bytes = hash("sha256", line, "buffer");
    const sums = this.#sums;
    for (let word = 0; word < WORDS; word += 1)
      sums[word] = ((sums[word] ?? 0) + bytes.readUInt32LE(4 * word)) >>> 0;
  }

  equals(other: LineDigest): boolean {
    return this.#sums.every((sum, word) => sum === other.#sums[word]);
  }
}
