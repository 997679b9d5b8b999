// How many reads of the journal run at once: so many, and so many more wait, in order. Every further one is refused.

import { BackpressureError } from "../../errors.ts";
import { limits } from "../../limits.ts";

export interface ReadSlotsOptions {
  /** Reads that run at the same time, now. */
  readonly atOnce: () => number;
  /** Reads that may wait for a slot. */
  readonly waitingMax: number;
}

export class ReadSlots {
  readonly #options: ReadSlotsOptions;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: ReadSlotsOptions) {
    this.#options = options;
  }

  /** Runs a read when a slot is free. @throws BackpressureError when too many wait; whatever `read` throws */
  async run<Read>(read: () => Promise<Read>): Promise<Read> {
    const { atOnce, waitingMax } = this.#options;
    if (this.#running >= atOnce()) {
      if (this.#waiting.length >= waitingMax)
        throw new BackpressureError(
          `${waitingMax.toLocaleString("en-US")} reads of the journal wait, as many as may: try again later`,
          limits.retryAfterMs,
        );
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running += 1;
    try {
      return await read();
    } finally {
      this.#passOn();
    }
  }

  /** The read that waits longest takes the slot over. */
  #passOn(): void {
    const next = this.#running > this.#options.atOnce() ? undefined : this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}
