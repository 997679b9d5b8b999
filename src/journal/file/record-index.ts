// Where in a segment a sequence is to be found: one entry for each stretch of the file, not one a record, so that ten
// gibibytes of journal need a megabyte of it. It reaches as far as the segment has been read.

import { limits } from "../../limits.ts";

/** Where a record begins. */
export interface Place {
  readonly seq: number;
  readonly offset: number;
}

export class FileIndex {
  readonly #entries: Place[] = [];

  /** To be told of every record that is read, by each reader in order; those that it knows do no harm. */
  add(entry: Place): void {
    const last = this.#entries.at(-1);
    if (last === undefined || entry.offset - last.offset >= limits.journalIndexSpacingBytes) {
      this.#entries.push(entry);
    }
  }

  /** The nearest known record at or before `seq`; undefined where none is known. */
  floor(seq: number): Place | undefined {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Place).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return this.#entries[low - 1];
  }
}
