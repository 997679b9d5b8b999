// A grace period: a possibly temporary condition is believed only after it has lasted for a given time.

import type { Clock } from "./clock.ts";

export class GracePeriod {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #forMs: number;
  /** Counts at most between two looks. */
  readonly #gapMsMax: number;
  #seenMonotonicMs: number | undefined;
  #enduredMs = 0;

  /** @param timesMin minimum number of sightings. A look may wait long for an answer, and waiting is no evidence: each
   *  sighting after the first counts for at most its part of `forMs` */
  constructor(clock: Pick<Clock, "monotonicMs">, forMs: number, timesMin = 1) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#gapMsMax = timesMin === 1 ? forMs : forMs / (timesMin - 1);
  }

  /** Notes one more sighting of the condition. To be called at every sighting.
   *  @returns whether the condition has lasted for the whole period since the first sighting */
  isBelieved(): boolean {
    const now = this.#clock.monotonicMs();
    this.#enduredMs += Math.min(now - (this.#seenMonotonicMs ?? now), this.#gapMsMax);
    this.#seenMonotonicMs = now;
    return this.#enduredMs >= this.#forMs;
  }

  /** Starts a new period: the condition has ended. */
  renew(): void {
    this.#seenMonotonicMs = undefined;
    this.#enduredMs = 0;
  }
}
