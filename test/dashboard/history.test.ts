// The history: rates from totals, quantiles of waits, gaps where nobody answered, and bounded memory.

import { describe, expect, it } from "vitest";
import { HistoryRing } from "../../src/dashboard/history.ts";
import { quantiles } from "../../src/dashboard/quantiles.ts";
import { WindowedCounts } from "../../src/dashboard/windowed-counts.ts";
import { limits } from "../../src/limits.ts";

const begin = 1_700_000_000_000;
const second = (at: number, tasks: Record<string, number>) => ({
  at: begin + at * 1_000,
  status: { tasks },
  utilisation: 0.5,
});

describe("the history", () => {
  it("has tasks per second by outcome, and present numbers", () => {
    const ring = new HistoryRing();
    expect(ring.add(second(0, { queued: 5, completed: 10 })).values).toMatchObject({
      completed: null,
      queued: 5,
    });
    const { values } = ring.add(
      second(2, {
        queued: 3,
        running: 1,
        assigned: 1,
        completed: 14,
        failed: 1,
        "dead-lettered": 1,
        cancelled: 2,
      }),
    );
    expect(values).toMatchObject({
      completed: 2,
      failed: 1,
      cancelled: 1,
      queued: 3,
      running: 2,
      utilisation: 0.5,
    });
    expect(values.submitted).toBe(4);
  });

  it("has the waits of the second, and forgets them", () => {
    const ring = new HistoryRing();
    for (let ms = 1; ms <= 100; ms += 1) ring.waited(ms);
    expect(ring.add(second(0, {})).values).toMatchObject({ waitP50Ms: 50, waitP95Ms: 95, waitP99Ms: 99 });
    expect(ring.add(second(1, {})).values).toMatchObject({ waitP50Ms: null });
  });

  it("shows a gap while nobody answers, and no burst afterwards", () => {
    const ring = new HistoryRing();
    ring.add(second(0, { completed: 1 }));
    ring.add({ at: begin + 1_000, status: undefined, utilisation: undefined });
    const after = ring.add(second(60, { completed: 10_000 }));
    expect(after.values.completed).toBeNull();
    expect(ring.history("15m").series.queued).toEqual([0, null, 0]);
  });

  it("sums the last minute", () => {
    const ring = new HistoryRing();
    for (let at = 0; at <= 100; at += 1) ring.add(second(at, { completed: at * 2 }));
    expect(ring.lastMinute.windowMs).toBe(60_000);
    expect(ring.lastMinute.of("completed")).toBe(120);
  });

  it("keeps 15 minutes of seconds and 6 hours of ten seconds, whatever comes", () => {
    const ring = new HistoryRing();
    for (let at = 0; at < 7 * 3_600; at += 1) {
      ring.waited(at % 10);
      ring.add(second(at, { completed: at }));
    }
    const [short, long] = [ring.history("15m"), ring.history("6h")];
    expect(short.times).toHaveLength(limits.dashboardSecondsKept);
    expect(long.times).toHaveLength(limits.dashboardTenSecondsKept);
    expect(long.times.at(-1)).toBe(begin + (7 * 3_600 - 1) * 1_000);
    expect(long.series.completed.at(-1)).toBe(1);
    expect(long.series.waitP99Ms.at(-1)).toBe(9);
    expect(long.stepMs).toBe(10_000);
  });
});

describe("quantiles", () => {
  it("are values that came, by the nearest rank", () => {
    expect(quantiles([], [0.5])).toBeUndefined();
    expect(quantiles([7], [0.01, 0.5, 1])).toEqual([7, 7, 7]);
    expect(quantiles([3, 1, 2, 4], [0.5, 0.75, 1])).toEqual([2, 3, 4]);
  });
});

describe("sums over a window", () => {
  it("forget uses outside the window", () => {
    const counts = new WindowedCounts();
    counts.add("a", begin);
    counts.add("a", begin + 5_000, 2);
    counts.add("b", begin + 60_000);
    expect([counts.sumOf("a"), counts.sumOf("b"), counts.total]).toEqual([3, 1, 4]);
    counts.forget(begin + limits.dashboardWindowMs + limits.dashboardStepMs);
    expect([counts.sumOf("a"), counts.sumOf("b"), counts.names]).toEqual([0, 1, ["b"]]);
    counts.forget(begin + 2 * limits.dashboardWindowMs);
    expect([counts.total, counts.steps]).toEqual([0, []]);
  });
});
