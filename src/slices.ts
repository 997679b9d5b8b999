// Long work on a loop that others need: a slice at a time, and between two slices everybody who waits gets their turn.

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

  /** Whether it is time to await `pause`. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMonotonicMs >= this.#sliceMs;
  }

  /** Resolves when the others had their turn; the next slice begins then. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.soon(resolve));
    this.#sinceMonotonicMs = this.#clock.monotonicMs();
  }
}
