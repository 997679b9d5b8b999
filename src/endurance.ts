// How long what may pass is endured before it is believed.

import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

export class Endurance {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #forMs: number;
  readonly #timesMin: number;
  #sinceMonotonicMs: number | undefined;
  #times = 0;

  /** @param timesMin how often it is to be seen at least: looks may be far apart, where each waits for an answer */
  constructor(clock: Pick<Clock, "monotonicMs">, forMs: number, timesMin = 1) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#timesMin = timesMin;
  }

  /** Whether it has lasted for so long; counts from the first time that this is asked. To be asked each time that it is
   *  seen. */
  get isOver(): boolean {
    const now = this.#clock.monotonicMs();
    this.#sinceMonotonicMs ??= now;
    this.#times += 1;
    return this.#times >= this.#timesMin && now - this.#sinceMonotonicMs >= this.#forMs;
  }

  /** It had passed. */
  renew(): void {
    this.#sinceMonotonicMs = undefined;
    this.#times = 0;
  }
}

/** Endures a loss for `forMs` and `limits.lossLooksMin` looks; where no later look can say otherwise, not at all. */
export function lossEndurance(clock: Pick<Clock, "monotonicMs">, forMs: number, mayPass: boolean): Endurance {
  return mayPass ? new Endurance(clock, forMs, limits.lossLooksMin) : new Endurance(clock, 0);
}
