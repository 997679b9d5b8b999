// Which agents hold the swarm up, and for how much of the time.

import { describe, expect, it } from "vitest";
import { agentId, instant } from "../../src/ids.ts";
import { type AgentPressure, BottleneckWatch } from "../../src/scheduling/bottleneck.ts";

function pressure(agent: string, isAtLimit: boolean, isAwaited: boolean): AgentPressure {
  return { agent: agentId(agent), isAtLimit, isAwaited };
}

describe("BottleneckWatch", () => {
  it("adds up the time at the limit while the kind waits, and no other", () => {
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

  it("counts from when an agent was first seen, and forgets who left", () => {
    const watch = new BottleneckWatch();
    watch.observe(instant(0), [pressure("old", true, true)]);
    watch.observe(instant(50), [pressure("new", true, true)]);
    expect(watch.shares(instant(100))).toEqual([{ agent: "new", share: 1, observedMs: 50 }]);
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
