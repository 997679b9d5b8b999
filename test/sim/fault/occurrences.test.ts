// What a long run must have reached, by what it may meet.

import { expect, it } from "vitest";
import { type FaultKind, faultKinds } from "../../../src/sim/fault/fault.ts";
import { occurrenceNames, reachableWithout } from "../../../src/sim/fault/occurrences.ts";

it("with every fault everything is to be reached", () => {
  expect(reachableWithout([])).toEqual(occurrenceNames);
});

it("what one of several faults brings about is to be reached while one of them is met", () => {
  expect(reachableWithout(["crash"])).toContain("agent-lost");
  expect(reachableWithout(["crash", "out-of-touch"])).not.toContain("agent-lost");
});

it("what takes two faults is not to be reached without one of them", () => {
  expect(reachableWithout(["foreign"])).not.toContain("term-begun-among-foreign");
  expect(reachableWithout(["crash", "pause", "alone"])).not.toContain("term-begun-among-foreign");
});

it("without any fault, what swarms meet all the same", () => {
  const reached = reachableWithout(Object.keys(faultKinds) as FaultKind[]);
  expect(reached).toContain("task-cancelled");
  expect(reached).not.toContain("deposed");
});
