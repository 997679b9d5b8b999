// When what failed of making, checking or purging by snapshots is tried again: each time that it fails in a row, twice
// as late.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";

export class RetryPause {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #nextMs: number = limits.snapshotRetryMs;
  #untilMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  get isOver(): boolean {
    return this.#clock.monotonicMs() >= this.#untilMonotonicMs;
  }

  /** It failed. @returns the pause that begins, ms: `limits.snapshotRetryMs` to `limits.snapshotRetryMsMax` */
  begin(): number {
    const pauseMs = this.#nextMs;
    this.#untilMonotonicMs = this.#clock.monotonicMs() + pauseMs;
    this.#nextMs = Math.min(pauseMs * 2, limits.snapshotRetryMsMax);
    return pauseMs;
  }

  /** It did not fail: over now, and the next is the first one again. */
  reset(): void {
    this.#untilMonotonicMs = Number.NEGATIVE_INFINITY;
    this.#nextMs = limits.snapshotRetryMs;
  }
}
