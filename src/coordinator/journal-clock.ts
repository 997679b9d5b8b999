// Journal time (design section 3): starts at max(last `at`, wall clock), advances with the monotonic clock, and
// never jumps. A wall clock that differs by more than the bound is approached slowly, and reported once.

import type { Clock } from "../clock.ts";
import { type Instant, instant } from "../ids.ts";
import { limits } from "../limits.ts";

export class JournalClock {
  readonly #clock: Clock;
  readonly #onSkew: (skewMs: number) => void;
  #at: number;
  #monotonicMs: number;
  #isSlewing = false;

  /** @param lastAt of the last applied batch · @param onSkew called when the wall clock leaves the bound */
  constructor(clock: Clock, lastAt: Instant, onSkew: (skewMs: number) => void) {
    this.#clock = clock;
    this.#onSkew = onSkew;
    this.#at = Math.max(lastAt, clock.now());
    this.#monotonicMs = clock.monotonicMs();
  }

  /** Whole milliseconds, never less than before. */
  now(): Instant {
    const monotonicMs = this.#clock.monotonicMs();
    const elapsedMs = Math.max(0, monotonicMs - this.#monotonicMs);
    this.#monotonicMs = monotonicMs;
    this.#at += elapsedMs + this.#slewMs(elapsedMs);
    return instant(Math.floor(this.#at));
  }

  #slewMs(elapsedMs: number): number {
    const skewMs = this.#clock.now() - (this.#at + elapsedMs);
    const isSkewed = Math.abs(skewMs) > limits.clockSkewMsMax;
    if (isSkewed && !this.#isSlewing) this.#onSkew(skewMs);
    this.#isSlewing = isSkewed;
    if (!isSkewed) return 0;
    return Math.sign(skewMs) * Math.min(Math.abs(skewMs), elapsedMs * limits.clockSlewShare);
  }
}
