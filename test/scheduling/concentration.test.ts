// When a kind's tasks go to one agent too often.

import { describe, expect, it } from "vitest";
import { agentId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ConcentrationWatch } from "../../src/scheduling/concentration.ts";

const enough = limits.concentrationAssignments;

/** The first agent gets so many of the assignments, nine others share the rest. */
function watched(topCount: number, serving = 10): ConcentrationWatch {
  const watch = new ConcentrationWatch();
  for (let n = 0; n < enough; n += 1)
    watch.assigned(agentId(n < topCount ? "top" : `other${n % 9}`), serving);
  return watch;
}

describe("ConcentrationWatch", () => {
  it("alerts above 2/n + 0.2, not at it", () => {
    expect(watched(400).alert()).toBeUndefined();
    expect(watched(401).alert()).toEqual({ agent: "top", share: 0.401, threshold: 0.4 });
  });

  it("is never alarmed by one of one or two agents", () => {
    expect(watched(enough, 1).alert()).toBeUndefined();
    expect(watched(enough, 2).alert()).toBeUndefined();
    expect(watched(enough, 3).alert()).toMatchObject({ share: 1 });
  });

  it("says nothing before it knows a thousand", () => {
    const watch = new ConcentrationWatch();
    for (let n = 1; n < enough; n += 1) watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toBeUndefined();
    watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toMatchObject({ agent: "top", share: 1 });
  });

  it("forgets what is older than a thousand", () => {
    const watch = watched(enough);
    for (let n = 0; n < 700; n += 1) watch.assigned(agentId(`other${n % 9}`), 10);
    expect(watch.alert()).toBeUndefined();
    for (let n = 0; n < 500; n += 1) watch.assigned(agentId("new"), 10);
    expect(watch.alert()).toMatchObject({ agent: "new", share: 0.5 });
  });

  it("names the lower id of equals", () => {
    const watch = new ConcentrationWatch();
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId(n % 2 === 0 ? "b" : "a"), 10);
    expect(watch.alert()).toMatchObject({ agent: "a", share: 0.5 });
  });

  it("raises no alarm at any moment while nine join one that was alone, and shares are even from then on", () => {
    const watch = watched(enough, 1);
    for (let n = 0; n < 2 * enough; n += 1) {
      watch.assigned(agentId(n % 10 === 0 ? "top" : `other${n % 10}`), 10);
      expect(watch.alert()).toBeUndefined();
    }
  });

  it("raises it when they join and get nothing", () => {
    const watch = watched(enough, 1);
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toEqual({ agent: "top", share: 1, threshold: 0.4 });
  });
});
