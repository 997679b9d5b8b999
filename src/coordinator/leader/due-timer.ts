// The timer that runs a turn when time alone gives it something to do (scheduling/wake.ts).

import type { Clock } from "../../clock.ts";
import type { Instant } from "../../ids.ts";

export class DueTimer {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Unless it is set for an earlier instant. @param dueAt journal time, as `now`; undefined when nothing is due */
  set(dueAt: Instant | undefined, now: Instant): void {
    if (dueAt === undefined || dueAt >= this.#dueAt) return;
    this.#cancel?.();
    this.#dueAt = dueAt;
    this.#cancel = this.#clock.after(Math.max(0, dueAt - now), () => {
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.#onDue();
    });
  }

  stop(): void {
    this.#cancel?.();
  }
}
