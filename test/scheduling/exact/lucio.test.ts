// Lucio's scheduler: the score, its reset, the cycle, and TopN under every ending.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LucioScheduler, priorityScore } from "../../../src/scheduling/exact/lucio.ts";

function submit(scheduler: LucioScheduler, user: string, count: number, taskWeight = 1): void {
  for (let n = 1; n <= count; n += 1) scheduler.submit({ id: `${user}${n}`, user, taskWeight });
}

function cycle(scheduler: LucioScheduler, now: number): string[] {
  return scheduler.schedule(now).map(({ task }) => task.id);
}

/** One task per cycle, each ended before the next. */
function oneByOne(scheduler: LucioScheduler, cycles: readonly number[]): string[] {
  return cycles.flatMap((now) => {
    const ids = cycle(scheduler, now);
    for (const id of ids) scheduler.ended(id);
    return ids;
  });
}

describe("priority score", () => {
  it.each([
    [2, 100, 90, 20],
    [1, 100, 100, 0],
    [0.5, 100, undefined, 50],
  ])("of weight %d at %d, last scheduled at %s: %d", (weight, now, last, score) => {
    expect(priorityScore(weight, now, last)).toBe(score);
  });
});

describe("a cycle", () => {
  it("serves the user served longest ago", () => {
    const scheduler = new LucioScheduler(1);
    submit(scheduler, "heavy", 3);
    expect(oneByOne(scheduler, [10])).toEqual(["heavy1"]);
    submit(scheduler, "light", 2);
    expect(oneByOne(scheduler, [20, 30, 40, 50])).toEqual(["light1", "heavy2", "light2", "heavy3"]);
  });

  it("ranks again each time: a heavier type overtakes while it waits", () => {
    const scheduler = new LucioScheduler(1);
    submit(scheduler, "bulk", 2);
    submit(scheduler, "quick", 2, 3);
    // At 10 both were never served, weight decides; at 20 bulk 1 × 20 is below quick 3 × 10.
    expect(oneByOne(scheduler, [10, 20, 25, 30])).toEqual(["quick1", "quick2", "bulk1", "bulk2"]);
  });

  it("resets a user's score with each task: a burst stands behind all others at once", () => {
    const scheduler = new LucioScheduler(4);
    submit(scheduler, "burst", 200);
    for (const user of ["ann", "bob", "cleo"]) submit(scheduler, user, 1);
    expect(cycle(scheduler, 10)).toEqual(["burst1", "ann1", "bob1", "cleo1"]);
  });

  it("reports the score a task was picked for", () => {
    const scheduler = new LucioScheduler(2);
    submit(scheduler, "a", 2, 3);
    expect(scheduler.schedule(7).map(({ score }) => score)).toEqual([21, 0]);
  });

  it("takes equal scores in order of submission, whatever their weight", () => {
    const scheduler = new LucioScheduler(3);
    scheduler.submit({ id: "first", user: "a", taskWeight: 1 });
    scheduler.submit({ id: "second", user: "a", taskWeight: 5 });
    expect(cycle(scheduler, 0)).toEqual(["first", "second"]);
  });
});

describe("TopN", () => {
  it("falls with each task and stops the cycle at 0", () => {
    const scheduler = new LucioScheduler(3);
    submit(scheduler, "a", 5);
    expect(cycle(scheduler, 1)).toHaveLength(3);
    expect(scheduler.topN).toBe(0);
    expect(cycle(scheduler, 2)).toEqual([]);
  });

  it("is returned on success, on failure and on the loss of the agent, once each", () => {
    const scheduler = new LucioScheduler(4);
    submit(scheduler, "a", 4);
    cycle(scheduler, 1);
    for (const task of ["a1", "a2"]) scheduler.started(task, "mortal");
    scheduler.started("a3", "other");
    scheduler.ended("a3");
    expect(scheduler.topN).toBe(1);
    expect(scheduler.agentDied("mortal")).toEqual(["a1", "a2"]);
    expect(scheduler.topN).toBe(3);
    expect(scheduler.agentDied("mortal")).toEqual([]);
    expect(() => scheduler.ended("a1")).toThrow(expect.objectContaining({ field: "task" }));
    expect(scheduler.topN).toBe(3);
    scheduler.ended("a4");
    expect(scheduler.topN).toBe(4);
  });

  it("is conserved under any order of endings and losses", () => {
    const step = fc.record({ what: fc.constantFrom("submit", "cycle", "end", "die"), n: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 5 }), (steps, topN) => {
        const scheduler = new LucioScheduler(topN);
        const agentOf = new Map<string, string>();
        for (const [at, { what, n }] of steps.entries()) {
          if (what === "submit") scheduler.submit({ id: `t${at}`, user: `u${n}`, taskWeight: n + 1 });
          if (what === "cycle") {
            for (const id of cycle(scheduler, at)) {
              scheduler.started(id, `a${n}`);
              agentOf.set(id, `a${n}`);
            }
          }
          const [running] = agentOf.keys();
          if (what === "end" && running !== undefined) {
            scheduler.ended(running);
            agentOf.delete(running);
          }
          if (what === "die") for (const id of scheduler.agentDied(`a${n}`)) agentOf.delete(id);
          expect(scheduler.topN).toBe(topN - agentOf.size);
        }
      }),
    );
  });
});

describe("refusals", () => {
  it.each<[string, (scheduler: LucioScheduler) => unknown]>([
    ["topN", () => new LucioScheduler(0)],
    ["topN", () => new LucioScheduler(Number.NaN)],
    ["taskWeight", (scheduler) => scheduler.submit({ id: "x", user: "u", taskWeight: 0 })],
    ["id", (scheduler) => scheduler.submit({ id: "a1", user: "u", taskWeight: 1 })],
    ["task", (scheduler) => scheduler.started("unheard-of", "a")],
    ["now", (scheduler) => scheduler.schedule(-1)],
  ])("a bad %s", (field, act) => {
    const scheduler = new LucioScheduler(1);
    submit(scheduler, "a", 1);
    expect(() => act(scheduler)).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
    expect(scheduler.topN).toBe(1);
  });
});
