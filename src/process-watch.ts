// What this process needs: how long its event loop kept events waiting, and memory. For `status`, metrics and the
// dashboard. A coordinator in a simulation has none. Not here: how long turns and appends take (leader/timings.ts).

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

export interface ProcessFigures {
  /** The lag is that of the last one to two windows of this length, ms. */
  readonly windowMs: number;
  /** How much later than due the event loop ran a timer, ms: 99th percentile, and longest. */
  readonly loopLagP99Ms: number;
  readonly loopLagMaxMs: number;
  readonly rssBytes: number;
  /** Size of the JavaScript heap in use: part of the resident memory. */
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
}

interface Lag {
  readonly p99: number;
  readonly max: number;
}

export class ProcessWatch {
  readonly #clock: Pick<Clock, "after">;
  readonly #delays: IntervalHistogram;
  #last: Lag = { p99: 0, max: 0 };
  #cancel: () => void = () => undefined;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
    this.#delays = monitorEventLoopDelay({ resolution: limits.loopLagSampleMs });
    this.#delays.enable();
    this.#endWindowLater();
  }

  get figures(): ProcessFigures {
    const { rss, heapUsed, heapTotal } = process.memoryUsage();
    const { p99, max } = this.#lag;
    return {
      windowMs: limits.loopLagWindowMs,
      loopLagP99Ms: rounded(Math.max(p99, this.#last.p99)),
      loopLagMaxMs: rounded(Math.max(max, this.#last.max)),
      ...{ rssBytes: rss, heapUsedBytes: heapUsed, heapTotalBytes: heapTotal },
    };
  }

  stop(): void {
    this.#cancel();
    this.#delays.disable();
  }

  /** The event loop's lag in the window that has begun. Delays include the pause between two samples. */
  get #lag(): Lag {
    const { count } = this.#delays;
    if (count === 0) return { p99: 0, max: 0 };
    const lagOf = (ns: number) => Math.max(0, ns / 1e6 - limits.loopLagSampleMs);
    return { p99: lagOf(this.#delays.percentile(99)), max: lagOf(this.#delays.max) };
  }

  #endWindowLater(): void {
    this.#cancel = this.#clock.after(
      limits.loopLagWindowMs,
      () => {
        this.#last = this.#lag;
        this.#delays.reset();
        this.#endWindowLater();
      },
      { unref: true },
    );
  }
}

/** To 0.1 ms: the timers of a system are not finer. */
function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
