// The recount of affinities: an affinity's agent is the last one, until the affinity is forgotten.

import { expect, it } from "vitest";
import { limits } from "../../../src/limits.ts";
import { checkNeeds } from "../../../src/sim/history/check-needs.ts";
import type { CommittedLog } from "../../../src/sim/history/committed-log.ts";

const submitted = (task: string) => ({
  type: "TaskSubmitted",
  task: { id: task, project: "p", affinity: "session" },
});
const assigned = (task: string, agent: string, decidedBy: string) => ({
  type: "TaskAssigned",
  ...{ project: "p", task, agent, receipt: { decidedBy } },
});
const completed = (task: string, agent: string) => ({ type: "TaskCompleted", project: "p", task, agent });

/** Sentences about a journal where agent b got a task after agent a, and a's attempt ends after `ms`. */
function sentencesAfter(ms: number, preferred: string): readonly string[] {
  const events = [
    [0, [submitted("t1"), submitted("t2"), submitted("t3")]],
    [1, [assigned("t1", "a", "only"), assigned("t2", "b", "only")]],
    [ms, [completed("t1", "a")]],
    [ms + 1, [assigned("t3", preferred, "affinity")]],
  ] as const;
  const batches = events.map(([at, each], nth) => ({ idx: nth + 1, at, events: each }));
  return checkNeeds({ batches } as unknown as CommittedLog).map(({ sentence }) => sentence);
}

it("an affinity's agent is the agent of the last assignment", () => {
  expect(sentencesAfter(10, "b")).toEqual([]);
  expect(sentencesAfter(10, "a")).toEqual(["batch 4 assigns t3 to a by affinity, whose agent is b"]);
});

it("an attempt that ends after its affinity was forgotten begins the affinity anew", () => {
  expect(sentencesAfter(limits.affinityMs + 1, "a")).toEqual([]);
  expect(sentencesAfter(limits.affinityMs + 1, "c")).toEqual([
    "batch 4 assigns t3 to c by affinity, whose agent is b",
  ]);
});
