// How long a leader's recent turns and appends took, for `status` and for the metrics. Costs two numbers per batch, and
// is always on: a slow journal shows in `waggle health` without metrics.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";
import type { CoordinatorMetrics, StoredBatch } from "../../metrics/coordinator-metrics.ts";

/** Count, percentiles and maximum of the samples in the window; times in ms. */
export interface TimingSummary {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface TimingsDeps {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Undefined: only recent values are kept. */
  readonly metrics: CoordinatorMetrics | undefined;
}

export class Timings {
  readonly #deps: TimingsDeps;
  readonly #turns = new RecentTimes();
  readonly #appends = new RecentTimes();

  constructor(deps: TimingsDeps) {
    this.#deps = deps;
  }

  /** A turn was decided, with or without a batch. */
  decided(ms: number): void {
    this.#turns.add(ms, this.#deps.clock.monotonicMs());
    this.#deps.metrics?.decided(ms);
  }

  stored(batch: StoredBatch): void {
    this.#appends.add(batch.appendMs, this.#deps.clock.monotonicMs());
    this.#deps.metrics?.stored(batch);
  }

  /** The turns of the last `limits.timingsWindowMs`, at most the newest `limits.timingsMax`. Undefined without any. */
  get turns(): TimingSummary | undefined {
    return this.#turns.summary(this.#deps.clock.monotonicMs());
  }

  /** The appends, in the same way. */
  get appends(): TimingSummary | undefined {
    return this.#appends.summary(this.#deps.clock.monotonicMs());
  }
}

/** Rings, side by side: the oldest entry is overwritten. */
class RecentTimes {
  readonly #ms: number[] = [];
  readonly #atMonotonicMs: number[] = [];
  #next = 0;

  add(ms: number, nowMonotonicMs: number): void {
    this.#ms[this.#next] = ms;
    this.#atMonotonicMs[this.#next] = nowMonotonicMs;
    this.#next = (this.#next + 1) % limits.timingsMax;
  }

  summary(nowMonotonicMs: number): TimingSummary | undefined {
    const since = nowMonotonicMs - limits.timingsWindowMs;
    const recent = this.#ms.filter((_, at) => (this.#atMonotonicMs[at] as number) >= since);
    if (recent.length === 0) return undefined;
    recent.sort((one, other) => one - other);
    return {
      count: recent.length,
      p50: quantile(recent, 0.5),
      p99: quantile(recent, 0.99),
      max: recent.at(-1) as number,
    };
  }
}

/** @param sorted ascending, not empty */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
}
