// Splits long work on a shared event loop into slices: between two slices all waiting events get their turn.

import type { Clock } from "./clock.ts";

export class Slices {
  readonly #clock: Clock;
  readonly #sliceMs: number;
  #sinceMonotonicMs: number;

  /** @param sliceMs how long the work may go on without a pause */
  constructor(clock: Clock, sliceMs: number) {
    this.#clock = clock;
    this.#sliceMs = sliceMs;
    this.#sinceMonotonicMs = clock.monotonicMs();
  }

  /** Whether the caller must await `pause` now. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMonotonicMs >= this.#sliceMs;
  }

  /** Resolves when the others had their turn; the next slice begins then. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.soon(resolve));
    this.#sinceMonotonicMs = this.#clock.monotonicMs();
  }

  /** Takes all steps, with a pause whenever a slice is over. */
  async run<Result>(steps: Generator<undefined, Result>): Promise<Result> {
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      if (this.isOver) await this.pause();
    }
  }
}
