// Operators move tasks: a revoked attempt, and another earliest start.

import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { agentId, attemptNumber, incarnation, instant, projectId, taskId } from "../../src/ids.ts";
import { explainWait } from "../../src/scheduling/explain.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { join, submit, Turns } from "../support/turns.ts";

const ref = { project: projectId("p"), task: taskId("t1") };

function revoke(attempt = 1, overrides: Partial<typeof ref> = {}): Command {
  return { type: "RevokeAttempt", ...ref, attempt: attemptNumber(attempt), ...overrides };
}

function reschedule(notBefore: number, round = 1): Command {
  return { type: "RescheduleTask", ...ref, round, notBefore: instant(notBefore) };
}

function underWay(overrides: Parameters<typeof submit>[0] = {}): Turns {
  const turns = new Turns();
  turns.turn(join("a1"));
  turns.turn(submit(overrides));
  return turns;
}

describe("a revoked attempt", () => {
  it("puts its task back at once, asks the agent to stop, and occupies the agent until it confirms", () => {
    const turns = underWay();
    const confirmed = turns.report("t1", { kind: "revoked" });
    expect(turns.turn(revoke())).toEqual([
      { kind: "revoked", task: "t1", attempt: 1, isRevoked: true, state: "queued" },
    ]);
    expect(turns.last("AttemptFailed")).toMatchObject({
      agent: "a1",
      failure: { class: "revoked", error: "an operator revoked the attempt" },
      revoked: true,
    });
    expect(turns.last("AttemptFailed").retryAt).toBeUndefined();
    expect(turns.effects.at(-1)).toMatchObject({
      kind: "revoke",
      attempt: { agent: "a1" },
      reason: "an operator revoked the attempt",
    });
    expect(turns.task("t1")).toMatchObject({ state: "queued", failures: 1, failedBy: ["a1"] });
    expect(turns.agent("a1").open.size).toBe(1);
    turns.turn(confirmed);
    expect(turns.last("AttemptReleased")).toMatchObject({ reason: "confirmed" });
    expect(turns.last("TaskAssigned")).toMatchObject({ agent: "a1", attempt: 2 });
  });

  it("counts against the task and not against the agent, and goes to a different agent if possible", () => {
    const turns = underWay();
    turns.turn(join("a2"));
    turns.turn(revoke());
    expect(turns.last("TaskAssigned")).toMatchObject({ agent: "a2", attempt: 2 });
    expect(turns.agent("a1").recordByKind.size).toBe(0);
  });

  it("that was the last of its task dead-letters the task", () => {
    const turns = underWay({ maxAttempts: 1 });
    expect(turns.turn(revoke())).toMatchObject([{ isRevoked: true, state: "dead-lettered" }]);
    expect(turns.last("TaskDeadLettered")).toMatchObject({
      reason: "attempts-exhausted",
      failure: { class: "revoked" },
      revoked: true,
    });
  });

  it("is revoked once: a repeated request changes nothing, also while a later attempt runs", () => {
    const turns = underWay();
    turns.turn(join("a2"));
    turns.turn(revoke());
    const before = fingerprint(turns.state);
    expect(turns.turn(revoke())).toEqual([
      { kind: "revoked", task: "t1", attempt: 1, isRevoked: false, state: "assigned" },
    ]);
    expect(fingerprint(turns.state)).toEqual(before);
  });

  it("must be an existing attempt", () => {
    const turns = underWay();
    const before = fingerprint(turns.state);
    expect(turns.turn(revoke(2), revoke(1, { task: taskId("t9") }))).toEqual([
      { kind: "no-such-attempt", task: "t1", attempts: 1, wanted: 2 },
      { kind: "unknown-task", task: "t9" },
    ]);
    expect(fingerprint(turns.state)).toEqual(before);
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    expect(turns.turn(revoke())).toMatchObject([{ isRevoked: false, state: "completed" }]);
    expect(turns.turn(revoke(2))).toMatchObject([{ kind: "no-such-attempt" }]);
  });

  it("is released when its agent is lost", () => {
    const turns = underWay();
    turns.turn(revoke());
    turns.turn({ type: "LapseAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
    expect(turns.last("AttemptReleased")).toMatchObject({ reason: "agent-gone" });
    expect(turns.task("t1")).toMatchObject({ state: "queued" });
  });
});

describe("a rescheduled task", () => {
  it("leaves its queue until the time, and starts then", () => {
    const turns = new Turns();
    turns.turn(submit());
    const notBefore = turns.at + 5_000;
    expect(turns.turn(reschedule(notBefore))).toEqual([
      { kind: "rescheduled", task: "t1", round: 1, notBefore, state: "delayed" },
    ]);
    turns.turn(join("a1"));
    expect(turns.task("t1")).toMatchObject({ state: "delayed", spec: { notBefore } });
    turns.passToDue();
    expect([turns.at, turns.task("t1").state]).toEqual([notBefore, "assigned"]);
  });

  it("that was delayed starts earlier, later, or at once", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(submit({ notBefore: instant(turns.at + 60_000) }));
    turns.turn(reschedule(turns.at + 90_000));
    expect(turns.state.timers.peek()?.dueAt).toBe(turns.at + 90_000);
    turns.turn(reschedule(turns.at + 1_000));
    expect(turns.state.timers.peek()?.dueAt).toBe(turns.at + 1_000);
    expect(turns.turn(reschedule(turns.at))).toMatchObject([{ state: "queued" }]);
    expect(turns.task("t1").state).toBe("assigned");
  });

  it("need not wait for its retry", () => {
    const turns = underWay();
    turns.turn(turns.report("t1", { kind: "failed", error: "no" }));
    expect(turns.task("t1").state).toBe("delayed");
    turns.turn(reschedule(turns.at));
    expect(turns.task("t1")).toMatchObject({ state: "assigned", attempt: 2 });
  });

  it("shows a wait for the start time, not for a retry, also after an attempt", () => {
    const turns = underWay();
    turns.turn(turns.report("t1", { kind: "failed", error: "no" }));
    const obstacles = () => explainWait(turns.state, turns.task("t1"), { at: turns.at }).obstacles;
    expect(obstacles()).toMatchObject([{ reason: "not-before", isRetry: true }]);
    const until = turns.at + 100_000;
    turns.turn(reschedule(until));
    expect(obstacles()).toMatchObject([{ reason: "not-before", until, isRetry: false }]);
  });

  it("is journaled once for the same time", () => {
    const turns = new Turns();
    turns.turn(submit());
    turns.turn(reschedule(turns.at + 5_000));
    const before = fingerprint(turns.state);
    expect(turns.turn(reschedule(turns.at + 5_000))).toMatchObject([{ kind: "rescheduled" }]);
    expect(fingerprint(turns.state)).toEqual(before);
    expect(turns.all("TaskRescheduled")).toHaveLength(1);
  });

  it("has the same answer for a repeated request after it has started because of the first", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(submit({ notBefore: instant(turns.at + 60_000) }));
    const now = turns.at;
    turns.turn(reschedule(now));
    turns.pass(10);
    expect(turns.turn(reschedule(now))).toMatchObject([{ kind: "rescheduled", state: "assigned" }]);
    expect(turns.turn(reschedule(now + 1))).toEqual([{ kind: "not-waiting", task: "t1", state: "assigned" }]);
  });

  it("must wait, be in the named round, be known, and start before its deadline", () => {
    const turns = new Turns();
    const deadline = instant(turns.at + 10_000);
    turns.turn(submit({ deadline }));
    const before = fingerprint(turns.state);
    expect(
      turns.turn(reschedule(deadline), reschedule(turns.at, 2), {
        type: "RescheduleTask",
        ...ref,
        task: taskId("t9"),
        round: 1,
        notBefore: turns.at,
      }),
    ).toEqual([
      { kind: "after-deadline", task: "t1", notBefore: deadline, deadline },
      { kind: "other-round", task: "t1", round: 1, wanted: 2 },
      { kind: "unknown-task", task: "t9" },
    ]);
    expect(fingerprint(turns.state)).toEqual(before);
    turns.turn({ type: "CancelTask", ...ref, round: 1 });
    expect(turns.turn(reschedule(turns.at))).toEqual([
      { kind: "not-waiting", task: "t1", state: "cancelled" },
    ]);
  });

  it("keeps its new time in a replay, and its id stays the same task", () => {
    const turns = new Turns();
    const first = submit();
    turns.turn(first);
    turns.turn(reschedule(turns.at + 5_000));
    expect(fingerprint(turns.replayed().state)).toEqual(fingerprint(turns.state));
    expect(turns.turn(first)).toMatchObject([{ kind: "accepted", duplicate: true }]);
  });
});
