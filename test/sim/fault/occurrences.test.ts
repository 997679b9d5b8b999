// The states that a long run must reach, by its kinds of faults.

import { expect, it } from "vitest";
import { type FaultKind, faultKinds } from "../../../src/sim/fault/fault.ts";
import { occurrenceNames, reachableWithout } from "../../../src/sim/fault/occurrences.ts";

it("with every fault, every state must be reached", () => {
  expect(reachableWithout([])).toEqual(occurrenceNames);
});

it("a state of several alternative faults must be reached with any of them", () => {
  expect(reachableWithout(["crash"])).toContain("agent-lost");
  expect(reachableWithout(["crash", "out-of-touch"])).not.toContain("agent-lost");
});

it("a state of two faults is not required without either", () => {
  expect(reachableWithout(["foreign"])).not.toContain("term-begun-among-foreign");
  expect(reachableWithout(["crash", "pause", "isolated"])).not.toContain("term-begun-among-foreign");
});

it("without any fault, only states of every swarm are required", () => {
  const reached = reachableWithout(Object.keys(faultKinds) as FaultKind[]);
  expect(reached).toContain("task-cancelled");
  expect(reached).not.toContain("deposed");
});
