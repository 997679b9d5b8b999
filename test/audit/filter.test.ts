// Filters of events.

import { describe, expect, it } from "vitest";
import { agentOf, eventFilter, matches, taskOf } from "../../src/audit/filter.ts";
import { taskId } from "../../src/ids.ts";
import { samples } from "./event-factory.ts";

const typesThat = (filter: Parameters<typeof matches>[1]) =>
  Object.values(samples)
    .filter((event) => matches(event, filter))
    .map(({ type }) => type);

describe("a filter", () => {
  it("without conditions passes everything", () => {
    expect(typesThat({})).toEqual(Object.keys(samples));
  });

  it("by task passes events with the task's id, and the submission", () => {
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

  it("by agent passes events with the agent's id", () => {
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

describe("a filter by attributes", () => {
  it("passes the events of tasks that were submitted or retried with them", () => {
    const isWanted = eventFilter({ attributes: { ticket: "OPS-1" } });
    const { TaskSubmitted: submitted, TaskAssigned: assigned, TaskRetried: retried, TermStarted } = samples;
    const withTicket = (ticket: string) => ({
      ...submitted,
      task: { ...submitted.task, attributes: { ticket, team: "a" } },
    });
    expect([assigned, withTicket("OPS-2"), assigned, TermStarted].filter(isWanted)).toEqual([]);
    const all = [withTicket("OPS-1"), assigned, { ...assigned, task: taskId("t2") }, TermStarted];
    expect(all.filter(isWanted)).toEqual(all.slice(0, 2));
    expect(isWanted({ ...retried, task: withTicket("OPS-1").task })).toBe(true);
  });
});

it("of events that name no task or agent says so", () => {
  expect(taskOf(samples.TermStarted)).toBeUndefined();
  expect(agentOf(samples.TaskSubmitted)).toBeUndefined();
});
