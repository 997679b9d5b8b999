// Filters of events.

import { describe, expect, it } from "vitest";
import { agentOf, matches, taskOf } from "../../src/audit/filter.ts";
import { samples } from "./event-factory.ts";

const typesThat = (filter: Parameters<typeof matches>[1]) =>
  Object.values(samples)
    .filter((event) => matches(event, filter))
    .map(({ type }) => type);

describe("a filter", () => {
  it("without conditions passes everything", () => {
    expect(typesThat({})).toEqual(Object.keys(samples));
  });

  it("by task passes what names it, its submission included", () => {
    expect(typesThat({ task: "t1" })).toEqual([
      "TaskSubmitted",
      "TaskRetried",
      "TaskReleased",
      "TaskRescheduled",
      "TaskAssigned",
      "TaskCompleted",
      "AttemptFailed",
      "TaskFailed",
      "TaskDeadLettered",
      "TaskCancelled",
      "TaskExpired",
      "AttemptReleased",
      "TokensCharged",
    ]);
    expect(typesThat({ task: "t2" })).toEqual([]);
  });

  it("by agent passes what names it", () => {
    const types = typesThat({ agent: "a1" });
    expect(types).toEqual(
      expect.arrayContaining(["TaskAssigned", "AgentJoined", "AssignmentsConfirmed", "AgentForgotten"]),
    );
    expect(types).not.toContain("TaskCancelled");
    expect(typesThat({ agent: "a2" })).toEqual([]);
  });

  it("by several conditions wants all of them", () => {
    expect(typesThat({ agent: "a1", task: "t1", types: ["TaskAssigned", "TermStarted"] })).toEqual([
      "TaskAssigned",
    ]);
    expect(typesThat({ types: [] })).toEqual([]);
  });
});

it("of events that name no task or agent says so", () => {
  expect(taskOf(samples.TermStarted)).toBeUndefined();
  expect(agentOf(samples.TaskSubmitted)).toBeUndefined();
});
