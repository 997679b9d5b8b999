// When compaction tries again what failed: after a pause that doubles with each failure in a row.

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

  /** After a failure. @returns the pause that begins, ms: `limits.snapshotRetryMs` to `limits.snapshotRetryMsMax` */
  begin(): number {
    const pauseMs = this.#nextMs;
    this.#untilMonotonicMs = this.#clock.monotonicMs() + pauseMs;
    this.#nextMs = Math.min(pauseMs * 2, limits.snapshotRetryMsMax);
    return pauseMs;
  }

  /** After a success. */
  reset(): void {
    this.#untilMonotonicMs = Number.NEGATIVE_INFINITY;
    this.#nextMs = limits.snapshotRetryMs;
  }
}
