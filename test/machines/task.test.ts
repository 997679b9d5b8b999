// The task's chart: every edge against a table, and every edge against `apply`. The test tries each event of the
// journal in each state. `apply` gives the same result for allowed events, and throws for the rest.

import { describe, expect, it } from "vitest";
import { getNextSnapshot } from "xstate";
import { type TaskSignal, taskMachine, taskState } from "../../machines/task.ts";
import { apply } from "../../src/core/apply.ts";
import { InvariantError } from "../../src/errors.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  token,
  userId,
} from "../../src/ids.ts";
import type { Event, TaskSpec } from "../../src/state/event.ts";
import { emptyState, type SwarmState } from "../../src/state/state.ts";
import { type SignalTable, snapshotIn, walkEveryEdge } from "./walk.ts";

const now = instant(1_000);
const later = instant(2_000);
const ref = { project: projectId("p"), task: taskId("t1") };
const agent = agentId("a1");
const attempt = attemptNumber(1);

/** Each signal of the chart with the matching event of the journal. */
const cases = {
  TASK_SUBMITTED: {
    signal: { type: "TASK_SUBMITTED", startsLater: false },
    event: { type: "TaskSubmitted", task: aTask(), hash: "h" },
  },
  "TASK_SUBMITTED later": {
    signal: { type: "TASK_SUBMITTED", startsLater: true },
    event: { type: "TaskSubmitted", task: aTask({ notBefore: later }), hash: "h" },
  },
  TASK_RETRIED: {
    signal: { type: "TASK_RETRIED" },
    event: { type: "TaskRetried", task: aTask(), hash: "h", round: 2 },
  },
  TASK_RELEASED: { signal: { type: "TASK_RELEASED" }, event: { type: "TaskReleased", ...ref } },
  TASK_RESCHEDULED: {
    signal: { type: "TASK_RESCHEDULED", startsLater: false },
    event: { type: "TaskRescheduled", ...ref, notBefore: now },
  },
  "TASK_RESCHEDULED later": {
    signal: { type: "TASK_RESCHEDULED", startsLater: true },
    event: { type: "TaskRescheduled", ...ref, notBefore: later },
  },
  TASK_ASSIGNED: {
    signal: { type: "TASK_ASSIGNED" },
    event: {
      type: "TaskAssigned",
      ...ref,
      attempt,
      agent,
      incarnation: incarnation("i1"),
      number: assignmentNumber(1),
      token: token("1.1"),
      receipt: {
        feasible: 1,
        candidates: [],
        ineligible: {},
        decidedBy: "only",
        queue: "k",
        waiting: 1,
        waitedMs: 0,
      },
    },
  },
  ASSIGNMENTS_CONFIRMED: {
    signal: { type: "ASSIGNMENTS_CONFIRMED" },
    event: { type: "AssignmentsConfirmed", agent, upTo: assignmentNumber(1) },
  },
  TASK_COMPLETED: {
    signal: { type: "TASK_COMPLETED" },
    event: { type: "TaskCompleted", ...ref, attempt, agent, result: "", latencyMs: 1 },
  },
  ATTEMPT_FAILED: {
    signal: { type: "ATTEMPT_FAILED", startsLater: false },
    event: { type: "AttemptFailed", ...aFailure() },
  },
  "ATTEMPT_FAILED later": {
    signal: { type: "ATTEMPT_FAILED", startsLater: true },
    event: { type: "AttemptFailed", ...aFailure(), retryAt: later },
  },
  TASK_FAILED: { signal: { type: "TASK_FAILED" }, event: { type: "TaskFailed", ...aFailure() } },
  TASK_DEAD_LETTERED: {
    signal: { type: "TASK_DEAD_LETTERED" },
    event: { type: "TaskDeadLettered", ...aFailure(), reason: "attempts-exhausted" },
  },
  TASK_CANCELLED: {
    signal: { type: "TASK_CANCELLED" },
    event: { type: "TaskCancelled", ...ref, reason: "requested" },
  },
  TASK_EXPIRED: { signal: { type: "TASK_EXPIRED" }, event: { type: "TaskExpired", ...ref } },
} satisfies Record<string, { signal: TaskSignal; event: Event }>;
type CaseName = keyof typeof cases;

const toRunning = ["TASK_SUBMITTED", "TASK_ASSIGNED", "ASSIGNMENTS_CONFIRMED"] as const;

/** A way into each state. */
const ways: Readonly<Record<string, readonly CaseName[]>> = {
  unsubmitted: [],
  queued: ["TASK_SUBMITTED"],
  delayed: ["TASK_SUBMITTED later"],
  assigned: ["TASK_SUBMITTED", "TASK_ASSIGNED"],
  running: toRunning,
  completed: [...toRunning, "TASK_COMPLETED"],
  failed: [...toRunning, "TASK_FAILED"],
  cancelled: [...toRunning, "TASK_CANCELLED"],
  expired: [...toRunning, "TASK_EXPIRED"],
  deadLettered: [...toRunning, "TASK_DEAD_LETTERED"],
};

const rescheduled = { TASK_RESCHEDULED: "queued", "TASK_RESCHEDULED later": "delayed" };
const fromOutside = { TASK_CANCELLED: "cancelled", TASK_EXPIRED: "expired" };
const attemptEnds = {
  TASK_COMPLETED: "completed",
  ATTEMPT_FAILED: "queued",
  "ATTEMPT_FAILED later": "delayed",
  TASK_FAILED: "failed",
  TASK_DEAD_LETTERED: "deadLettered",
};

describe("the task's chart", () => {
  it("goes where the table says and nowhere else", () => {
    const signals: SignalTable<typeof taskMachine> = Object.fromEntries(
      Object.entries(cases).map(([name, { signal }]) => [name, signal]),
    );
    walkEveryEdge(taskMachine, signals, {
      unsubmitted: { TASK_SUBMITTED: "queued", "TASK_SUBMITTED later": "delayed" },
      queued: { TASK_ASSIGNED: "assigned", ...rescheduled, ...fromOutside },
      delayed: { TASK_RELEASED: "queued", ...rescheduled, ...fromOutside },
      assigned: { ASSIGNMENTS_CONFIRMED: "running", ...attemptEnds, ...fromOutside },
      running: { ...attemptEnds, ...fromOutside },
      completed: {},
      failed: { TASK_RETRIED: "queued" },
      cancelled: { TASK_RETRIED: "queued" },
      expired: { TASK_RETRIED: "queued" },
      deadLettered: { TASK_RETRIED: "queued" },
    });
  });
});

describe("apply obeys the task's chart", () => {
  const pairs = Object.keys(ways).flatMap((from) =>
    (Object.keys(cases) as CaseName[]).map((name) => [from, name] as const),
  );

  it.each(pairs)("%s: %s", (from, name) => {
    const state = stateAfter(ways[from] ?? []);
    const before = snapshotIn(taskMachine, from);
    expect(stateOfTask(state), "the way leads where it should").toBe(taskState(before));
    const after = getNextSnapshot(taskMachine, before, cases[name].signal);
    const run = () => apply(state, cases[name].event, { at: now, idx: batchIndex(9) });
    if (before.can(cases[name].signal)) {
      run();
      expect(stateOfTask(state)).toBe(taskState(after));
    } else {
      expect(run).toThrow(InvariantError);
    }
  });
});

function stateAfter(way: readonly CaseName[]): SwarmState {
  const state = emptyState();
  const joined: Event = {
    type: "AgentJoined",
    agent,
    incarnation: incarnation("i1"),
    kinds: [kind("k")],
    maxConcurrent: 2,
  };
  for (const event of [joined, ...way.map((name) => cases[name].event)]) {
    apply(state, event, { at: now, idx: batchIndex(1) });
  }
  return state;
}

function stateOfTask(state: SwarmState): string | undefined {
  return state.taskById.get(ref)?.state ?? state.endedById.get(ref)?.state;
}

function aTask(overrides: Partial<TaskSpec> = {}): TaskSpec {
  return {
    id: taskId("t1"),
    kind: kind("k"),
    project: projectId("p"),
    user: userId("u"),
    weight: 1,
    priority: 100,
    payload: "",
    maxAttempts: 3,
    timeoutMs: 1_000,
    ...overrides,
  };
}

function aFailure() {
  return {
    ...ref,
    attempt: attemptNumber(1),
    agent: agentId("a1"),
    failure: { class: "failed", error: "no" },
    latencyMs: 1,
  } as const;
}
