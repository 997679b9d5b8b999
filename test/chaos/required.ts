// Maximum times of recovery, and the conditions that fail the short form. figures.ts measures the times.

import { type Figure, quantile, type Recoveries } from "./figures.ts";

/** Factor on the bounds in the short form, which CI runs on shared machines. With ten times more work than
 *  cores, the median for killed leaders was 2.3 s (bound 2 s) and for killed agents 23 s (bound 12 s), but
 *  single rounds took up to 19 s. So the short form bounds the median, by three: it detects a swarm that is
 *  always late, not a busy machine. A factor of four would never fail for kills of the leader of three servers'
 *  stream, because such rounds end after 60 s. */
const SHORT_FACTOR = 3;

/** By T, ms. */
const requiredOfLeader: Readonly<Record<number, number>> = { 1000: 2_000, 3000: 5_000 };

/** ms; undefined without a bound. A stopped process is as silent as a killed one, so the same bound applies. */
export function requiredMsOf(figure: Figure, leaderTimeoutMs: number): number | undefined {
  switch (figure) {
    case "leader killed → next accept":
    case "leader stopped → next accept":
      return requiredOfLeader[leaderTimeoutMs];
    case "stream leader killed → next accept":
    case "stream leader stopped → next accept":
      return 15_000;
    case "agent killed → reassigned":
    case "agent stopped → reassigned":
      return 12_000;
    default:
      return undefined;
  }
}

/** Sentences of the short form about medians far above the bound. */
export function tooSlow(recoveries: Recoveries, leaderTimeoutMs: number): string[] {
  return (Object.entries(recoveries) as [Figure, number[]][]).flatMap(([figure, times]) => {
    const requiredMs = requiredMsOf(figure, leaderTimeoutMs);
    const medianMs = quantile(times, 0.5);
    if (requiredMs === undefined || !(medianMs > SHORT_FACTOR * requiredMs)) return [];
    const [median, required] = [medianMs, requiredMs].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
    return [`too slow: ${figure} ${median} in the middle of ${times.length}; ${required} are required`];
  });
}
