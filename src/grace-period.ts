// How long what may pass is endured before it is believed.

import type { Clock } from "./clock.ts";

export class GracePeriod {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #forMs: number;
  /** Counts at most between two looks. */
  readonly #gapMsMax: number;
  #seenMonotonicMs: number | undefined;
  #enduredMs = 0;

  /** @param timesMin how often it is to be seen at least: a look may wait long for an answer, and that time says
   *  nothing, so that each behind the first counts for its part of `forMs` at most */
  constructor(clock: Pick<Clock, "monotonicMs">, forMs: number, timesMin = 1) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#gapMsMax = timesMin === 1 ? forMs : forMs / (timesMin - 1);
  }

  /** Notes that it is seen once more: to be called each time, for that is what counts.
   *  @returns whether it has lasted for so long, from the first time on, that it is believed */
  isBelieved(): boolean {
    const now = this.#clock.monotonicMs();
    this.#enduredMs += Math.min(now - (this.#seenMonotonicMs ?? now), this.#gapMsMax);
    this.#seenMonotonicMs = now;
    return this.#enduredMs >= this.#forMs;
  }

  /** It had passed. */
  renew(): void {
    this.#seenMonotonicMs = undefined;
    this.#enduredMs = 0;
  }
}
