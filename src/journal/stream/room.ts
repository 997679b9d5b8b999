// How full the journal is: the bytes of all its segments as last counted, plus appends since. JetStream bounds each
// stream by itself, so the bound over all segments is kept here, by each process that appends.

import { limits } from "../../limits.ts";
import type { JournalUsage } from "../journal.ts";

const MEBIBYTE = 1024 ** 2;

export class Room {
  readonly #bytesMax: number;
  readonly #count: () => Promise<number>;
  #bytes = 0;

  /** @param count bytes of all segments as the server has them */
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

  /** Why a record does not fit; undefined when it fits. */
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
