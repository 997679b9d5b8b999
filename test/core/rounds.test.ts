// Rounds of a task: a retry opens a round or is refused, and the promises hold in each round.

import { describe, expect, it } from "vitest";
import { decodeState } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { agentId, assignmentNumber, instant, projectId, taskId, userId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { endedTask, liveTask } from "../support/task-refs.ts";
import { aTask, join, submit, Turns } from "../support/turns.ts";

const failed = { kind: "failed", error: "no" } as const;
const p = projectId("p");

/** A swarm with an agent, and the task `t1` dead-lettered after `attempts`. */
function deadLettered({ attempts = 2, agent = "a1" } = {}): Turns {
  const turns = new Turns();
  turns.turn(join(agent), submit({ maxAttempts: attempts, deadline: instant(turns.at + 3_600_000) }));
  for (let n = 0; n < attempts; n += 1) {
    if (n > 0) turns.passToDue();
    turns.turn(turns.report("t1", failed));
  }
  expect(turns.ended("t1")).toMatchObject({
    state: "dead-lettered",
    attempts,
    round: 1,
    agent: agentId(agent),
  });
  return turns;
}

describe("a retry", () => {
  it("opens the next round: attempt numbers continue, failures and times restart", () => {
    const turns = deadLettered();
    turns.turn({ type: "DrainAgent", agent: agentId("a1") });
    turns.pass(100);
    expect(turns.turn(turns.retry("t1"))).toEqual([{ kind: "retried", task: taskId("t1"), round: 2 }]);
    const row = turns.task("t1");
    expect(row).toMatchObject({ state: "queued", round: 2, attempt: 2, attemptsBefore: 2, sequence: 1 });
    expect(row).toMatchObject({ failures: 0, failedBy: [], roundAt: turns.at, roundIdx: turns.state.idx });
    expect(row.deadlineTimer).toBeUndefined();
    turns.turn({ type: "UndrainAgent", agent: agentId("a1") });
    expect(turns.task("t1").open).toMatchObject({ attempt: 3 });
    turns.turn(turns.report("t1", failed));
    expect(turns.task("t1")).toMatchObject({ state: "delayed", failures: 1 });
    turns.passToDue();
    turns.turn(turns.report("t1", failed));
    expect(turns.ended("t1")).toMatchObject({ state: "dead-lettered", attempts: 4, round: 2, sequence: 1 });
    expect(turns.ended("t1").submittedIdx).toBe(2);
  });

  it("of a task with a not-before and a deadline runs at once, and expires by a new deadline", () => {
    const turns = new Turns();
    const times = { notBefore: instant(turns.at + 50), deadline: instant(turns.at + 100) };
    turns.turn(submit(times));
    turns.pass(100);
    turns.turn();
    expect(turns.ended("t1").state).toBe("expired");
    const retry = turns.retry("t1");
    turns.turn({ ...retry, spec: { ...retry.spec, deadline: instant(turns.at + 500) } });
    expect(turns.task("t1")).toMatchObject({ state: "queued" });
    turns.pass(500);
    turns.turn();
    expect(turns.ended("t1")).toMatchObject({ state: "expired", round: 2 });
  });

  it("asked for twice opens one round, and has the same reply, whatever happened since", () => {
    const turns = deadLettered();
    const retry = turns.retry("t1");
    const answer = { kind: "retried", task: taskId("t1"), round: 2 };
    expect(turns.turn(retry, retry)).toEqual([answer, answer]);
    turns.turn({ type: "CancelTask", project: p, task: taskId("t1"), round: 2 });
    expect(turns.turn(retry)).toEqual([answer]);
    expect(turns.ended("t1").round).toBe(2);
    turns.turn(turns.retry("t1"));
    expect(turns.turn(retry)).toEqual([answer]);
    expect(turns.all("TaskRetried").map(({ round }) => round)).toEqual([2, 3]);
  });

  it("is refused for a task that completed, is live, is in another round, or is unknown", () => {
    const turns = deadLettered();
    turns.turn(submit({ id: taskId("t2") }), submit({ id: taskId("t3"), kind: aTask().kind }));
    turns.turn(turns.report("t2", { kind: "completed", result: "" }));
    const refused = turns.turn(
      turns.retry("t2"),
      turns.retry("t3"),
      turns.retry("t1", { round: 4 }),
      turns.retry("t1", { project: projectId("q") }),
      turns.retry("nobody"),
    );
    expect(refused).toEqual(
      [
        { kind: "not-retried", task: taskId("t2"), state: "completed", round: 1, wanted: 2 },
        { kind: "not-retried", task: taskId("t3"), state: "running", round: 1, wanted: 2 },
        { kind: "not-retried", task: taskId("t1"), state: "dead-lettered", round: 1, wanted: 4 },
        { kind: "unknown-task", task: taskId("t1") },
        { kind: "unknown-task", task: taskId("nobody") },
      ].map((reply) =>
        "state" in reply && reply.state === "running" ? { ...reply, state: turns.task("t3").state } : reply,
      ),
    );
    expect(turns.all("TaskRetried")).toEqual([]);
  });

  it("is subject to the bounds, declarations and budgets of a submission", () => {
    const turns = deadLettered();
    const retry = turns.retry("t1");
    turns.turn({ type: "SetProject", project: p, patch: { queueMax: 1 } });
    turns.turn(submit({ id: taskId("t2"), user: userId("v"), role: "nobody" }));
    expect(turns.turn(retry)).toMatchObject([{ kind: "refused", reason: "project-queue-full" }]);
    const budget = { tokens: 10, windowMs: limits.budgetWindowMsMin, mode: "reject" as const };
    turns.turn({ type: "SetProject", project: p, patch: { queueMax: null, budget } });
    expect(turns.turn({ ...retry, spec: { ...retry.spec, tokens: 11 } })).toMatchObject([
      { kind: "over-budget" },
    ]);
    turns.turn({ type: "SetPolicy", patch: { projects: "declared" } });
    turns.turn({ type: "SetProject", project: p, patch: { budget: null } });
    expect(turns.turn(retry)).toMatchObject([{ kind: "retried" }]);
  });

  it("keeps the same submission the same task, and other content a conflict", () => {
    const turns = deadLettered();
    const [submitted] = turns.all("TaskSubmitted");
    turns.turn(turns.retry("t1"));
    const again = {
      type: "SubmitTask",
      task: submitted?.task ?? aTask(),
      hash: submitted?.hash ?? "",
    } as const;
    expect(turns.turn(again, { ...again, hash: "other" })).toMatchObject([
      { kind: "accepted", duplicate: true },
      { kind: "conflict" },
    ]);
  });
});

describe("a cancellation", () => {
  it("ends the named round: repeated after a retry, it leaves the new round alone", () => {
    const turns = new Turns();
    turns.turn(submit({ role: "nobody" }));
    const cancel = { type: "CancelTask", project: p, task: taskId("t1"), round: 1 } as const;
    const cancelled = { kind: "cancelled", task: taskId("t1"), state: "cancelled" };
    expect(turns.turn(cancel, cancel)).toEqual([cancelled, cancelled]);
    turns.turn(turns.retry("t1"));
    expect(turns.turn(cancel)).toEqual([{ kind: "other-round", task: taskId("t1"), round: 2, wanted: 1 }]);
    expect(turns.task("t1")).toMatchObject({ state: "queued", round: 2 });
    expect(turns.turn({ ...cancel, round: 2 })).toEqual([cancelled]);
    expect(turns.turn({ ...cancel, round: 3 })).toMatchObject([{ kind: "other-round", round: 2, wanted: 3 }]);
    expect(turns.all("TaskCancelled")).toHaveLength(2);
  });
});

describe("attempts of an earlier round", () => {
  it("that still occupy capacity do not affect the new round, and their late results are stale", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 2 }), submit());
    const late = turns.report("t1", { kind: "completed", result: "late" });
    turns.turn({ type: "CancelTask", project: p, task: taskId("t1"), round: 1 });
    expect(turns.agent("a1").open.size).toBe(1);
    turns.turn(turns.retry("t1"));
    expect(turns.task("t1")).toMatchObject({ attempt: 2, open: { attempt: 2 } });
    expect(turns.agent("a1").open.size).toBe(2);
    expect(turns.turn(late)).toEqual([{ kind: "stale" }]);
    expect([...turns.agent("a1").open.values()].map(({ attempt }) => attempt)).toEqual([2]);
    expect(turns.turn(late)).toEqual([{ kind: "stale" }]);
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    expect(turns.turn(late)).toEqual([{ kind: "stale" }]);
    expect(turns.ended("t1")).toMatchObject({ state: "completed", round: 2, attempts: 2 });
  });

  it("end with their agent's session, and the new round continues", () => {
    const turns = new Turns();
    turns.turn(join("a1"), submit());
    turns.turn({ type: "CancelTask", project: p, task: taskId("t1"), round: 1 });
    turns.turn(turns.retry("t1"));
    expect(turns.task("t1").state).toBe("queued"); // its agent's capacity of one is occupied by its own first attempt
    const { incarnation } = turns.agent("a1");
    turns.turn({
      type: "ReconcileAgent",
      agent: agentId("a1"),
      incarnation,
      held: [],
      seen: assignmentNumber(1),
    });
    expect(turns.task("t1").open).toMatchObject({ attempt: 2 });
  });
});

describe("the counters", () => {
  it("move with the task: a retried task counts as live, and no longer by its old outcome", () => {
    const turns = deadLettered();
    const counts = () => {
      const project = turns.state.projectById.get(p);
      return [turns.state, project, project?.userByName.get(userId("u"))].map(
        (row) => row?.counts["dead-lettered"],
      );
    };
    expect(counts()).toEqual([1, 1, 1]);
    turns.turn(turns.retry("t1"));
    expect(counts()).toEqual([0, 0, 0]);
    expect(turns.state.submissions).toBe(1);
  });

  it("never falls below 0 where the project's row was evicted meanwhile", () => {
    const turns = deadLettered();
    turns.state.projectById.delete(p);
    turns.state.idleProjects.delete(p);
    turns.turn(turns.retry("t1"));
    expect(turns.state.projectById.get(p)?.counts["dead-lettered"]).toBe(0);
  });

  it("measures the wait of each round from its own beginning", () => {
    const turns = deadLettered();
    turns.pass(60_000);
    turns.turn(turns.retry("t1"));
    const user = turns.state.projectById.get(p)?.userByName.get(userId("u"));
    expect(user).toMatchObject({ started: 2, waitMsSum: 0 });
  });
});

describe("a replay, and a snapshot", () => {
  it("know rounds: of live tasks and of ended ones, also where older batches are gone", () => {
    const turns = deadLettered();
    turns.turn(submit({ id: taskId("t2"), role: "nobody" }), turns.retry("t1"));
    turns.turn(
      { type: "CancelTask", project: p, task: taskId("t1"), round: 2 },
      submit({ id: taskId("t3"), role: "nobody" }),
    );
    turns.turn({ type: "CancelTask", project: p, task: taskId("t2"), round: 1 });
    turns.turn(turns.retry("t2"));
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
    const read = decodeState(encodeState(turns.state));
    expect(fingerprint(read)).toBe(fingerprint(turns.state));
    expect(liveTask(read, "t2")).toMatchObject({ round: 2, sequence: 2 });
    expect(endedTask(read, "t1")).toMatchObject({ round: 2, sequence: 1, agent: agentId("a1") });
  });
});
