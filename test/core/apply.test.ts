// Events that do not fit the state stop the fold. test/machines/task.test.ts covers the task's own chart; these tests
// cover agents, terms and numbers.

import { describe, expect, it } from "vitest";
import { apply } from "../../src/core/apply.ts";
import { InvariantError } from "../../src/errors.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  incarnation,
  kind,
  taskId,
  term,
  token,
} from "../../src/ids.ts";
import type { Event } from "../../src/state/event.ts";
import { aRef } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

const a1 = agentId("a1");
const nobody = agentId("nobody");

function assigned(overrides: Partial<Extract<Event, { type: "TaskAssigned" }>> = {}): Event {
  return {
    type: "TaskAssigned",
    ...aRef("queued"),
    attempt: attemptNumber(1),
    agent: a1,
    incarnation: incarnation("a1-1"),
    number: assignmentNumber(2),
    token: token("1.2"),
    receipt: {
      feasible: 1,
      candidates: [],
      ineligible: {},
      decidedBy: "only",
      queue: "",
      waiting: 1,
      waitedMs: 0,
    },
    ...overrides,
  };
}

/** Agent a1 with a capacity of two and t1 in flight, an agent that left, and a queued task of another kind. */
function aSwarm(): Turns {
  const turns = new Turns();
  turns.turn(join("a1", { maxConcurrent: 2 }), join("gone"));
  turns.turn({ type: "LeaveAgent", agent: agentId("gone"), incarnation: incarnation("gone-1") });
  turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("queued"), kind: kind("other") }));
  return turns;
}

const illegal: readonly (readonly [string, Event])[] = [
  [
    "a term that does not grow",
    { type: "TermStarted", term: term(1), leader: "c2", opened: "o1", timeoutMs: 3_000 },
  ],
  ["a task submitted twice", { type: "TaskSubmitted", task: submit({ id: taskId("t1") }).task, hash: "" }],
  ["an attempt that skips one", assigned({ attempt: attemptNumber(2) })],
  ["an assignment that skips a number", assigned({ number: assignmentNumber(3) })],
  ["an assignment to a life gone by", assigned({ incarnation: incarnation("a1-0") })],
  [
    "an assignment to an agent that left",
    assigned({ agent: agentId("gone"), incarnation: incarnation("gone-1") }),
  ],
  ["an assignment to nobody", assigned({ agent: nobody })],
  ["an assignment of a task under way", assigned({ task: taskId("t1"), attempt: attemptNumber(2) })],
  [
    "an agent that leaves with an attempt open",
    { type: "AgentLeft", agent: a1, incarnation: incarnation("a1-1"), reason: "left" },
  ],
  [
    "a session that leaves twice",
    { type: "AgentLeft", agent: agentId("gone"), incarnation: incarnation("gone-1"), reason: "left" },
  ],
  ["a life begun before the one before ended", { ...joinedAs("a1-2") }],
  [
    "a confirmation of an assignment that was not sent",
    { type: "AssignmentsConfirmed", agent: a1, upTo: assignmentNumber(2) },
  ],
  ["an agent ahead by nothing", { type: "AgentFoundAhead", agent: a1, upTo: assignmentNumber(1) }],
  ["an agent forgotten while it is there", { type: "AgentForgotten", agent: a1 }],
  [
    "capacity freed without a revocation",
    {
      type: "AttemptReleased",
      ...aRef("t1"),
      attempt: attemptNumber(1),
      agent: a1,
      reason: "confirmed",
    },
  ],
  [
    "a result of another's attempt",
    {
      type: "TaskCompleted",
      ...aRef("t1"),
      attempt: attemptNumber(1),
      agent: agentId("gone"),
      result: "",
      latencyMs: 0,
    },
  ],
  [
    "a result of another attempt",
    {
      type: "TaskCompleted",
      ...aRef("t1"),
      attempt: attemptNumber(2),
      agent: a1,
      result: "",
      latencyMs: 0,
    },
  ],
  ["a drain of nobody", { type: "AgentDrained", agent: nobody }],
];

function joinedAs(incarnationOf: string): Event {
  return {
    type: "AgentJoined",
    agent: a1,
    incarnation: incarnation(incarnationOf),
    kinds: [],
    maxConcurrent: 1,
  };
}

describe("apply", () => {
  it.each(illegal)("stops at %s", (_, event) => {
    const { state } = aSwarm();
    const context = { at: state.at, idx: state.idx };
    expect(() => apply(state, event, context)).toThrow(InvariantError);
  });

  it("stops when an agent has no capacity left", () => {
    const { state } = aSwarm();
    const context = { at: state.at, idx: state.idx };
    apply(state, assigned(), context);
    apply(state, { type: "TaskSubmitted", task: submit({ id: taskId("t3") }).task, hash: "" }, context);
    const third = assigned({ task: taskId("t3"), number: assignmentNumber(3) });
    expect(() => apply(state, third, context)).toThrow("agent a1 has free capacity");
  });
});
