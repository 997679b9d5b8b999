// Journal time: advances with the monotonic clock and never jumps. A wall clock that differs by more than the bound is
// approached slowly, and reported once.
//
// A term's time begins where the journal's time is. A coordinator that followed the journal knows the time by its own
// monotonic clock, whatever its wall clock says. A coordinator that only read old batches cannot tell an hour without
// a leader from a wall clock that is an hour ahead. It takes max(last `at`, wall clock).

import type { Clock } from "../../clock.ts";
import { type Instant, instant } from "../../ids.ts";
import { limits } from "../../limits.ts";

/** Journal time at a moment of this process. */
interface TimeMark {
  readonly at: Instant;
  readonly monotonicMs: number;
}

/** Journal time on a standby: the newest `at` of the followed records, advanced by the monotonic clock. */
export class FollowedTime {
  #mark: TimeMark | undefined;

  /** Notes a batch just written at `at`. A batch that came late, after a pause of its writer or the network, is
   *  ignored. */
  read(at: Instant, monotonicMs: number): void {
    const carried = this.carriedTo(monotonicMs);
    if (carried === undefined || at >= carried - limits.clockSkewMsMax) this.#mark = { at, monotonicMs };
  }

  /** Journal time now; undefined before anything was read. */
  carriedTo(monotonicMs: number): number | undefined {
    if (this.#mark === undefined) return undefined;
    return this.#mark.at + Math.max(0, monotonicMs - this.#mark.monotonicMs);
  }
}

export class JournalClock {
  readonly #clock: Clock;
  readonly #onSkew: (skewMs: number) => void;
  #at: number;
  #monotonicMs: number;
  #isSlewing = false;

  /** @param lastAt journal time of the last applied batch · @param followed journal time of a standby, if any
   *  @param onSkew called when the wall clock leaves the bound */
  constructor(
    clock: Clock,
    { lastAt, followed }: { readonly lastAt: Instant; readonly followed: FollowedTime },
    onSkew: (skewMs: number) => void,
  ) {
    this.#clock = clock;
    this.#onSkew = onSkew;
    this.#monotonicMs = clock.monotonicMs();
    this.#at = Math.max(lastAt, followed.carriedTo(this.#monotonicMs) ?? clock.now());
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
