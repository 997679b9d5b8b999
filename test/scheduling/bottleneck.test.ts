// Agents that hold the swarm up, and their share of the time.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentId, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { type AgentPressure, BottleneckWatch } from "../../src/scheduling/bottleneck.ts";

function pressure(agent: string, isAtLimit: boolean, isAwaited: boolean): AgentPressure {
  return { agent: agentId(agent), isAtLimit, isAwaited };
}

describe("BottleneckWatch", () => {
  it("adds up only the time at the limit while the kind waits", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [
      pressure("a", true, true),
      pressure("b", true, false),
      pressure("c", false, true),
    ]);
    watch.observe(instant(30), [
      pressure("a", true, false),
      pressure("b", true, true),
      pressure("c", false, true),
    ]);
    expect(watch.shares(instant(100))).toEqual([
      { agent: "b", share: 0.7, observedMs: 100 },
      { agent: "a", share: 0.3, observedMs: 100 },
    ]);
  });

  it("can be asked in between without counting twice", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [pressure("a", true, true)]);
    for (const at of [10, 10, 20]) expect(watch.shares(instant(at))).toMatchObject([{ share: 1 }]);
    watch.observe(instant(20), [pressure("a", false, true)]);
    expect(watch.shares(instant(40))).toEqual([{ agent: "a", share: 0.5, observedMs: 40 }]);
  });

  it("counts from an agent's first observation, and forgets agents that left", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [pressure("old", true, true)]);
    watch.observe(instant(50), [pressure("new", true, true)]);
    expect(watch.shares(instant(100))).toEqual([{ agent: "new", share: 1, observedMs: 50 }]);
    watch.observe(instant(100), []);
    watch.observe(instant(100), [pressure("newest", true, true)]);
    watch.observe(instant(100), []);
    expect(watch.shares(instant(150))).toEqual([]);
  });

  it("looks back over the window, to within a step, and no further", () => {
    const windowMs = limits.bottleneckWindowMs;
    const stepMs = windowMs / limits.bottleneckSteps;
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [pressure("a", true, true), pressure("b", false, false)]);
    watch.observe(instant(windowMs), [pressure("a", false, true), pressure("b", true, true)]);
    expect(watch.shares(instant(windowMs))).toEqual([
      { agent: "a", share: 1, observedMs: windowMs - stepMs },
    ]);
    expect(watch.shares(instant(1.5 * windowMs))).toEqual([
      { agent: "b", share: (0.5 * windowMs) / (windowMs - stepMs), observedMs: windowMs - stepMs },
      { agent: "a", share: (0.5 * windowMs - stepMs) / (windowMs - stepMs), observedMs: windowMs - stepMs },
    ]);
    expect(watch.shares(instant(2 * windowMs + stepMs - 1))).toEqual([
      { agent: "b", share: 1, observedMs: windowMs - 1 },
    ]);
  });

  it("is as accurate after a long time without questions", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [pressure("a", true, true)]);
    expect(watch.shares(instant(10 * limits.bottleneckWindowMs + 7))).toMatchObject([{ share: 1 }]);
    watch.observe(instant(10 * limits.bottleneckWindowMs + 7), [pressure("a", false, true)]);
    expect(watch.shares(instant(20 * limits.bottleneckWindowMs))).toEqual([]);
  });

  it("agrees with counting each millisecond", () => {
    const stepMs = limits.bottleneckWindowMs / limits.bottleneckSteps;
    const moments = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 * stepMs }), fc.boolean()), {
      minLength: 2,
      maxLength: 12,
    });
    fc.assert(
      fc.property(moments, (spans) => {
        const watch = new BottleneckWatch();
        const busy: [from: number, to: number][] = [];
        let at = 0;
        for (const [ms, isBottleneck] of spans) {
          watch.observe(instant(at), [pressure("a", isBottleneck, true)]);
          if (isBottleneck) busy.push([at, at + ms]);
          at += ms;
        }
        const from = Math.max(0, (Math.floor(at / stepMs) - limits.bottleneckSteps + 1) * stepMs);
        const busyMs = busy.reduce((sum, [start, end]) => sum + Math.max(0, end - Math.max(start, from)), 0);
        const [known] = watch.shares(instant(at));
        expect(known).toEqual(
          busyMs === 0 ? undefined : { agent: "a", share: busyMs / (at - from), observedMs: at - from },
        );
      }),
    );
  });

  it("has no share of no time", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(5), [pressure("a", true, true)]);
    expect(watch.shares(instant(5))).toEqual([]);
  });

  it("stops at an instant that went back", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(5), []);
    expect(() => watch.observe(instant(4), [])).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVARIANT" }),
    );
  });
});
