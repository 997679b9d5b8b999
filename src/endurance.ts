// How long what may pass is endured before it is believed.

import type { Clock } from "./clock.ts";

export class Endurance {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #forMs: number;
  #sinceMonotonicMs: number | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">, forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  /** Whether it has lasted for so long; counts from the first time that this is asked. */
  get isOver(): boolean {
    const now = this.#clock.monotonicMs();
    this.#sinceMonotonicMs ??= now;
    return now - this.#sinceMonotonicMs >= this.#forMs;
  }

  /** It had passed. */
  renew(): void {
    this.#sinceMonotonicMs = undefined;
  }
}
