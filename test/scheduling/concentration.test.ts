// When a kind's tasks go to one agent too often.

import { describe, expect, it } from "vitest";
import { agentId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ConcentrationWatch } from "../../src/scheduling/concentration.ts";

const enough = limits.concentrationAssignments;

/** The first agent gets `share` of the assignments, `others` share the rest. */
function watched(topCount: number, others = 9): ConcentrationWatch {
  const watch = new ConcentrationWatch();
  for (let n = 0; n < enough; n += 1) watch.assigned(agentId(n < topCount ? "top" : `other${n % others}`));
  return watch;
}

describe("ConcentrationWatch", () => {
  it("alerts above 2/n + 0.2, not at it", () => {
    expect(watched(400).alert(10)).toBeUndefined();
    expect(watched(401).alert(10)).toEqual({ agent: "top", share: 0.401, threshold: 0.4 });
  });

  it("is never alarmed by one of one or two agents", () => {
    expect(watched(enough).alert(1)).toBeUndefined();
    expect(watched(enough).alert(2)).toBeUndefined();
    expect(watched(enough).alert(3)).toMatchObject({ share: 1 });
  });

  it("says nothing before it knows a thousand", () => {
    const watch = new ConcentrationWatch();
    for (let n = 1; n < enough; n += 1) watch.assigned(agentId("top"));
    expect(watch.alert(10)).toBeUndefined();
    watch.assigned(agentId("top"));
    expect(watch.alert(10)).toMatchObject({ agent: "top", share: 1 });
  });

  it("forgets what is older than a thousand", () => {
    const watch = watched(enough);
    for (let n = 0; n < 700; n += 1) watch.assigned(agentId(`other${n % 9}`));
    expect(watch.alert(10)).toBeUndefined();
    for (let n = 0; n < 500; n += 1) watch.assigned(agentId("new"));
    expect(watch.alert(10)).toMatchObject({ agent: "new", share: 0.5 });
  });

  it("names the lower id of equals", () => {
    const watch = new ConcentrationWatch();
    for (let n = 0; n < enough; n += 1) watch.assigned(agentId(n % 2 === 0 ? "b" : "a"));
    expect(watch.alert(10)).toMatchObject({ agent: "a", share: 0.5 });
  });
});
