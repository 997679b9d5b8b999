// How full the journal is: the bytes of all its segments as last counted, plus appends since. JetStream bounds each stream
// by itself, so the bound over all segments is kept here, by each process that appends.

import { limits } from "../../limits.ts";
import type { JournalUsage } from "../journal.ts";

const MEBIBYTE = 1024 ** 2;

export class Room {
  readonly #bytesMax: number;
  readonly #count: () => Promise<number>;
  #bytes = 0;
  #isCounting = false;

  /** @param count bytes of all segments as the server has them */
  constructor(bytesMax: number, count: () => Promise<number>) {
    this.#bytesMax = bytesMax;
    this.#count = count;
  }

  /** @throws as `count` */
  async usage(): Promise<JournalUsage> {
    this.#bytes = await this.#count();
    return {
      bytes: this.#bytes,
      bytesMax: this.#bytesMax,
      remedy:
        "raise the size in `retain`, and give JetStream that room (`max_file_store`, or the account's quota)",
    };
  }

  /** Why a record does not fit; undefined when it fits. A refusal counts anew, for the next append. */
  refusal(size: number): string | undefined {
    if (this.#bytes + size <= this.#bytesMax) return undefined;
    void this.#countAgain();
    return `the journal's segments hold ${inMiB(this.#bytes)} of ${inMiB(this.#bytesMax)}`;
  }

  stored(size: number): void {
    this.#bytes += size + limits.journalRecordOverheadBytes;
  }

  async #countAgain(): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    try {
      this.#bytes = await this.#count();
    } catch {
      // the next refused append counts again
    } finally {
      this.#isCounting = false;
    }
  }
}

function inMiB(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
