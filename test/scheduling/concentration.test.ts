// Detection of a kind whose tasks go to one agent too often.

import { describe, expect, it } from "vitest";
import { agentId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ConcentrationWatch, concentrationThreshold } from "../../src/scheduling/concentration.ts";

const enough = limits.concentrationAssignments;
const fewest = limits.concentrationAssignmentsMin;

/** The first agent gets a given number of the assignments, nine others share the rest. */
function watched(topCount: number, serving = 10): ConcentrationWatch {
  const watch = new ConcentrationWatch();
  for (let n = 0; n < enough; n += 1)
    watch.assigned(agentId(n < topCount ? "top" : `other${n % 9}`), serving);
  return watch;
}

describe("concentrationThreshold", () => {
  it("is 2/n + 0.2, at most 0.95", () => {
    expect(concentrationThreshold(2)).toBe(0.95);
    expect(concentrationThreshold(3)).toBeCloseTo(0.8667, 4);
    expect(concentrationThreshold(10)).toBe(0.4);
    expect(concentrationThreshold(1_000)).toBeCloseTo(0.202, 12);
    expect(() => concentrationThreshold(1)).toThrow(/two agents/);
  });
});

describe("ConcentrationWatch", () => {
  it("alerts above 2/n + 0.2, not at it", () => {
    expect(watched(400).alert()).toBeUndefined();
    expect(watched(401).alert()).toEqual({
      agent: "top",
      share: 0.401,
      threshold: 0.4,
      assignments: enough,
    });
  });

  it("alerts for one of two agents above 0.95, not at 0.95", () => {
    expect(watched(950, 2).alert()).toBeUndefined();
    expect(watched(951, 2).alert()).toMatchObject({ share: 0.951, threshold: 0.95 });
  });

  it("alerts from 200 assignments on", () => {
    const watch = new ConcentrationWatch();
    for (let n = 1; n < fewest; n += 1) watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toBeUndefined();
    watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toEqual({ agent: "top", share: 1, threshold: 0.4, assignments: fewest });
  });

  it("names an agent that serves a kind alone from 200 assignments on, without an alert", () => {
    const watch = new ConcentrationWatch();
    for (let n = 1; n < fewest; n += 1) watch.assigned(agentId("top"), 1);
    expect(watch.soleAgent()).toBeUndefined();
    watch.assigned(agentId("top"), 1);
    expect(watch.soleAgent()).toBe("top");
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId("top"), 1);
    expect(watch.alert()).toBeUndefined();
    watch.assigned(agentId("top"), 2);
    expect(watch.soleAgent()).toBeUndefined();
  });

  it("ends the alert when all other agents have left", () => {
    const watch = watched(enough);
    for (let n = 1; n < fewest; n += 1) watch.assigned(agentId("top"), 1);
    expect(watch.alert()).toMatchObject({ agent: "top" });
    watch.assigned(agentId("top"), 1);
    expect(watch.alert()).toBeUndefined();
    expect(watch.soleAgent()).toBe("top");
  });

  it("counts no assignment with a single possible agent", () => {
    const watch = new ConcentrationWatch();
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId("top"), n % 2 === 0 ? 1 : 10);
    expect(watch.alert()).toMatchObject({ assignments: enough / 2 });
  });

  it("forgets assignments older than the last thousand", () => {
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

  it("raises no alarm at any moment while nine agents join a single one, and shares are even from then on", () => {
    const watch = watched(enough, 1);
    for (let n = 0; n < 2 * enough; n += 1) {
      watch.assigned(agentId(n % 10 === 0 ? "top" : `other${n % 10}`), 10);
      expect(watch.alert()).toBeUndefined();
    }
  });

  it("raises an alarm when they join and get nothing", () => {
    const watch = watched(enough, 1);
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId("top"), 10);
    expect(watch.alert()).toMatchObject({ agent: "top", share: 1, threshold: 0.4 });
  });

  it("takes the mean threshold where the number of agents changed", () => {
    const watch = watched(enough, 2);
    for (let n = 0; n < enough / 2; n += 1) watch.assigned(agentId("top"), 10);
    expect(watch.alert()?.threshold).toBeCloseTo(0.675, 12);
  });
});
