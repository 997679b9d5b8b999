// Where in the file a sequence is to be found: one entry for each stretch of the file, not one a record,
// so that ten gibibytes of journal need a megabyte of it.

import { limits } from "../limits.ts";

interface Entry {
  readonly seq: number;
  readonly offset: number;
}

export class FileIndex {
  readonly #entries: Entry[] = [];

  /** To be told of every record, in order. */
  add(entry: Entry): void {
    const last = this.#entries.at(-1);
    if (last === undefined || entry.offset - last.offset >= limits.journalIndexSpacingBytes) {
      this.#entries.push(entry);
    }
  }

  /** The nearest known record at or before `seq`; undefined in an empty journal. */
  floor(seq: number): Entry | undefined {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return this.#entries[low - 1];
  }
}
