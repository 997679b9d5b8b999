// How full the journal is: the bytes of all segments at the last count, plus later appends. JetStream can bound a
// single stream only, so each appending process enforces the bound on all segments.

import { limits } from "../../limits.ts";
import type { JournalUsage } from "../journal.ts";

const MEBIBYTE = 1024 ** 2;

export class Room {
  readonly #bytesMax: number;
  readonly #count: () => Promise<number>;
  #bytes = 0;

  /** @param count asks the server for the bytes of all segments */
  constructor(bytesMax: number, count: () => Promise<number>) {
    this.#bytesMax = bytesMax;
    this.#count = count;
  }

  /** @throws as `count` */
  async usage(): Promise<JournalUsage> {
    this.#bytes = await this.#count();
    const remedy =
      "raise the size in `retain`, and give JetStream that room (`max_file_store`, or the account's quota)";
    return { bytes: this.#bytes, bytesMax: this.#bytesMax, remedy };
  }

  /** The reason to refuse a record; undefined if the record fits. */
  refusal(size: number): string | undefined {
    if (this.#bytes + size <= this.#bytesMax) return undefined;
    void this.usage().catch(() => undefined); // counts again for the next append, which may fit
    const [held, room] = [this.#bytes, this.#bytesMax].map((bytes) => (bytes / MEBIBYTE).toFixed(1));
    return `the journal's segments hold ${held} of ${room} MiB`;
  }

  stored(size: number): void {
    this.#bytes += size + limits.journalRecordOverheadBytes;
  }
}
