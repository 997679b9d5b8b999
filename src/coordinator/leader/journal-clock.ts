// Journal time: advances with the monotonic clock and never jumps. A wall clock that differs by
// more than the bound is approached slowly, and reported once.
//
// A term's time begins where the journal's is. A coordinator that followed the journal as it was written knows that
// by its own monotonic clock, whatever its wall clock says; one that has only read what others wrote before cannot
// tell an hour without a leader from a wall clock that is an hour ahead, and takes max(last `at`, wall clock).

import type { Clock } from "../../clock.ts";
import { type Instant, instant } from "../../ids.ts";
import { limits } from "../../limits.ts";

/** What journal time was at a moment of this process. */
interface TimeMark {
  readonly at: Instant;
  readonly monotonicMs: number;
}

/** Journal time as a standby knows it: of the records that it reads as they are written, carried on since. */
export class FollowedTime {
  #mark: TimeMark | undefined;

  /** A batch stamped `at` has just been written. One that comes late, after its writer or the wire stood still, says
   *  less than what is known. */
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

  /** @param lastAt of the last applied batch · @param followed what was read as it was written, if anything was
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
