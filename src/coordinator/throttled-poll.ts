// Polls from time to time: only if the last look is old, with a single look in flight, and no caller waits.

import type { Clock } from "../clock.ts";

export interface ThrottledPollOptions {
  readonly clock: Clock;
  /** A look is old after so long. */
  readonly everyMs: number;
  /** Must not reject. */
  readonly look: () => Promise<void>;
}

export class ThrottledPoll {
  readonly #options: ThrottledPollOptions;
  #lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  #isLooking = false;

  constructor(options: ThrottledPollOptions) {
    this.#options = options;
  }

  /** Looks, when the last look is old and over. */
  look(): void {
    const { clock, everyMs, look } = this.#options;
    const now = clock.monotonicMs();
    if (this.#isLooking || now - this.#lookedMonotonicMs < everyMs) return;
    this.#lookedMonotonicMs = now;
    this.#isLooking = true;
    void look().finally(() => {
      this.#isLooking = false;
    });
  }

  /** Makes the last look old, because much may have changed. */
  lookSoon(): void {
    this.#lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  }
}
