// How attempts end: by their agent's report or by the coordinator's verdict, and what that costs whom.

import { describe, expect, it } from "vitest";
import type { Command, ReportedOutcome } from "../../src/core/command.ts";
import { InvariantError } from "../../src/errors.ts";
import {
  agentId,
  attemptNumber,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  token,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { aRef } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

const failed: ReportedOutcome = { kind: "failed", error: "no luck" };
const completed: ReportedOutcome = { kind: "completed", result: "42" };
const refused: ReportedOutcome = { kind: "infrastructure", error: "quota" };

/** One agent with one task under way. */
function underWay(overrides: Parameters<typeof submit>[0] = {}): Turns {
  const turns = new Turns();
  turns.turn(join("a1"));
  turns.turn(submit(overrides));
  return turns;
}

describe("a report", () => {
  it("of success ends the task with its result, latency and tokens, and frees the capacity", () => {
    const turns = underWay();
    turns.pass(250);
    expect(turns.turn(turns.report("t1", { ...completed, tokens: 7 }))).toEqual([{ kind: "ok" }]);
    expect(turns.last("TaskCompleted")).toMatchObject({
      result: "42",
      latencyMs: 250,
      tokens: 7,
      agent: "a1",
    });
    expect(turns.ended("t1")).toMatchObject({ state: "completed", attempts: 1 });
    expect(turns.agent("a1")).toMatchObject({ completed: 1, open: new Map() });
  });

  it("of success leaves the result out where the project journals results as hash, and requires the digest", () => {
    const turns = underWay();
    turns.turn({ type: "SetProject", project: projectId("p"), patch: { results: "hash" } });
    const digest = { sha256: "ab".repeat(32), bytes: 2 };
    expect(() => turns.turn(turns.report("t1", completed))).toThrow(InvariantError);
    const other = underWay();
    other.turn({ type: "SetProject", project: projectId("p"), patch: { results: "hash" } });
    other.turn(other.report("t1", { ...completed, digest } as ReportedOutcome));
    expect(other.last("TaskCompleted")).toMatchObject({ resultDigest: digest });
    expect(other.last("TaskCompleted")).not.toHaveProperty("result");
    expect(other.ended("t1")).toMatchObject({ state: "completed" });
  });

  it("of failure delays the task, and dead-letters it after the last attempt, with the reason", () => {
    const turns = underWay({ maxAttempts: 2 });
    turns.turn(turns.report("t1", failed));
    expect(turns.task("t1")).toMatchObject({ state: "delayed", failures: 1, failedBy: ["a1"] });
    turns.passToDue();
    expect(turns.task("t1")).toMatchObject({ state: "assigned", attempt: 2 });
    turns.turn(turns.report("t1", failed));
    expect(turns.ended("t1")).toMatchObject({ state: "dead-lettered", attempts: 2 });
    expect(turns.last("TaskDeadLettered")).toMatchObject({
      reason: "attempts-exhausted",
      failure: { class: "failed", error: "no luck" },
    });
  });

  it("of a refusal by infrastructure costs no attempt and counts against no agent, up to its cap", () => {
    const turns = underWay({ maxAttempts: 1 });
    for (let refusals = 1; refusals <= limits.infrastructureFailuresMax; refusals += 1) {
      turns.turn(turns.report("t1", refused));
      expect(turns.task("t1")).toMatchObject({ state: "delayed", failures: 0, failedBy: [] });
      turns.passToDue();
    }
    expect(turns.agent("a1").recordByKind.size).toBe(0);
    turns.turn(turns.report("t1", refused));
    expect(turns.last("TaskDeadLettered")).toMatchObject({ reason: "infrastructure-exhausted" });
  });

  it("of invalid input ends the task at once and counts against no agent", () => {
    const turns = underWay({ maxAttempts: 5 });
    turns.turn(turns.report("t1", { kind: "invalid", error: "not a number" }));
    expect(turns.ended("t1")).toMatchObject({ state: "failed", attempts: 1 });
    expect(turns.agent("a1").recordByKind.size).toBe(0);
  });

  it("of an agent that gave up a begun attempt costs an attempt, and counts against no agent", () => {
    const turns = underWay({ maxAttempts: 2 });
    turns.turn(turns.report("t1", { kind: "revoked" }));
    expect(turns.task("t1")).toMatchObject({ state: "delayed", failures: 1, infrastructureFailures: 0 });
    expect(turns.last("AttemptFailed").failure.class).toBe("aborted");
    turns.passToDue();
    turns.turn(turns.report("t1", { kind: "revoked" }));
    expect(turns.last("TaskDeadLettered")).toMatchObject({ reason: "attempts-exhausted" });
    expect(turns.agent("a1").recordByKind.size).toBe(0);
  });

  it("sends the task to an agent without a failure, and back if no such agent is left", () => {
    const turns = underWay();
    turns.turn(join("a2"), turns.report("t1", failed));
    turns.passToDue();
    expect(turns.last("TaskAssigned")).toMatchObject({ agent: "a2", attempt: 2 });
    expect(turns.last("TaskAssigned").receipt.ineligible).toEqual({ "failed-this-task": 1 });
    turns.turn(turns.report("t1", failed), {
      type: "LeaveAgent",
      agent: agentId("a2"),
      incarnation: incarnation("a2-1"),
    });
    turns.passToDue();
    expect(turns.last("TaskAssigned")).toMatchObject({ agent: "a1", attempt: 3 });
  });
});

describe("a tick", () => {
  it("is one end of an attempt, whatever the outcome; capacity freed later is no second tick", () => {
    const turns = underWay({ timeoutMs: 5_000 });
    turns.turn(turns.report("t1", failed));
    expect(turns.state.tick).toBe(1);
    turns.passToDue();
    turns.passToDue();
    expect([turns.last("AttemptFailed").failure.class, turns.state.tick]).toEqual(["timed-out", 2]);
    turns.turn({ type: "LapseAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
    expect([turns.last("AttemptReleased").task, turns.state.tick]).toEqual(["t1", 2]);
    turns.turn(submit({ id: taskId("t2") }), {
      type: "CancelTask",
      project: projectId("p"),
      task: taskId("t2"),
      round: 1,
    });
    expect(turns.state.tick).toBe(2);
  });
});

describe("a wrong report", () => {
  const wrong: readonly (readonly [string, Parameters<Turns["report"]>[2], string])[] = [
    ["with another token", { token: token("9.9") }, "stale-token"],
    ["from another agent", { agent: agentId("a2") }, "stale-token"],
    ["from an agent nobody knows", { agent: agentId("nobody") }, "stale-token"],
    ["from a life gone by", { incarnation: incarnation("a1-0") }, "stale"],
    ["about an attempt that never was", { attempt: attemptNumber(2) }, "gone"],
    ["about a task nobody knows", { task: taskId("nothing") }, "gone"],
  ];
  it.each(wrong)("%s is answered and changes nothing", (_, overrides, answer) => {
    const turns = underWay();
    turns.turn(join("a2", { kinds: [] }));
    const before = fingerprint(turns.state);
    expect(turns.turn(turns.report("t1", completed, overrides))).toEqual([{ kind: answer }]);
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("a second time is ok if it repeats the recorded outcome, else stale", () => {
    const turns = underWay();
    const [success, failure] = [turns.report("t1", completed), turns.report("t1", failed)];
    expect(turns.turn(success, success, failure)).toEqual([
      { kind: "ok" },
      { kind: "ok" },
      { kind: "stale" },
    ]);
    const before = fingerprint(turns.state);
    expect(turns.turn(success, failure)).toEqual([{ kind: "ok" }, { kind: "stale" }]);
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("after another agent completed the task is stale", () => {
    const turns = underWay({ timeoutMs: 100 });
    const late = turns.report("t1", completed);
    turns.turn(join("a2"));
    turns.passToDue();
    turns.passToDue();
    turns.turn(turns.report("t1", completed));
    expect(turns.last("TaskCompleted")).toMatchObject({ agent: "a2", attempt: 2 });
    expect(turns.turn(late)).toEqual([{ kind: "stale" }]);
    expect(turns.agent("a1").open.size).toBe(0);
    expect(turns.turn(late)).toEqual([{ kind: "stale" }]);
  });

  it("after the horizon is gone", () => {
    const turns = underWay();
    const again = turns.report("t1", completed);
    turns.turn(again);
    turns.pass(limits.rememberMsDefault + 1);
    turns.turn(submit({ id: taskId("t2") }));
    turns.turn(turns.report("t2", completed));
    expect(turns.turn(again)).toEqual([{ kind: "gone" }]);
  });
});

describe("the coordinator's verdict", () => {
  it("time-out: the attempt is revoked, occupies capacity until its agent confirms, and runs elsewhere", () => {
    const turns = underWay({ timeoutMs: 5_000 });
    turns.passToDue();
    expect(turns.last("AttemptFailed")).toMatchObject({ failure: { class: "timed-out" }, revoked: true });
    expect(turns.effects.at(-1)).toMatchObject({ kind: "revoke", attempt: { task: "t1", attempt: 1 } });
    expect([...turns.agent("a1").open.values()]).toMatchObject([{ state: "revoked" }]);
    turns.passToDue();
    expect(turns.task("t1").state).toBe("queued");
    turns.turn(join("a2"));
    expect(turns.last("TaskAssigned")).toMatchObject({ agent: "a2", attempt: 2 });
  });

  it("stall: counts as a failure of the agent's; for a closed attempt it has no effect", () => {
    const turns = underWay();
    const stall: Command = { type: "StallAttempt", ...aRef("t1"), attempt: attemptNumber(1), jitter: 0 };
    turns.turn({ ...stall, attempt: attemptNumber(2) }, { ...stall, task: taskId("nothing") });
    expect(turns.all("AttemptFailed")).toEqual([]);
    turns.turn(stall, stall);
    expect(turns.all("AttemptFailed")).toMatchObject([{ failure: { class: "stalled" }, revoked: true }]);
    expect(turns.agent("a1").recordByKind.get(kind("k"))).toMatchObject({ failures: 1 });
  });

  it("deadline: ends a task wherever it is, and revokes its attempt", () => {
    const turns = new Turns();
    const deadline = instant(turns.at + 1_000);
    turns.turn(join("a1"));
    turns.turn(
      submit({ id: taskId("under way"), deadline }),
      submit({ id: taskId("queued"), deadline }),
      submit({ id: taskId("delayed"), deadline, notBefore: instant(deadline + 1) }),
    );
    turns.passToDue();
    expect(["under way", "queued", "delayed"].map((id) => turns.ended(id).state)).toEqual(
      Array.from({ length: 3 }, () => "expired"),
    );
    expect(turns.effects.filter(({ kind: what }) => what === "revoke")).toHaveLength(1);
    expect([...turns.agent("a1").open.values()]).toMatchObject([{ task: "under way", state: "revoked" }]);
  });

  it("a deadline within the back-off ends the task when it comes", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(submit({ deadline: instant(turns.at + 10) }));
    turns.turn(turns.report("t1", failed));
    turns.passToDue();
    expect(turns.ended("t1").state).toBe("expired");
  });
});

describe("an agent that fails ten times while others succeed", () => {
  /** a1 fails every task, a2 succeeds, until a1 is suspended. */
  function suspended(): Turns {
    const turns = new Turns();
    turns.turn(join("a1"), join("a2"));
    for (let lesson = 0; turns.all("AgentSuspended").length === 0; lesson += 1) {
      if (lesson > 20) throw new Error("a1 is never suspended");
      const ids = [`x${lesson}`, `y${lesson}`];
      turns.turn(...ids.map((id) => submit({ id: taskId(id), maxAttempts: 1 })));
      turns.turn(
        ...ids.map((id) => turns.report(id, turns.task(id).open?.agent === "a1" ? failed : completed)),
      );
    }
    return turns;
  }

  it("is suspended, probed with one task after the back-off, and suspended for twice as long if that fails", () => {
    const turns = suspended();
    expect(turns.last("AgentSuspended")).toEqual({
      type: "AgentSuspended",
      agent: "a1",
      kind: "k",
      until: turns.at + limits.suspendMs,
      step: 1,
    });
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    expect([turns.task("t1").open?.agent, turns.task("t2").state]).toEqual(["a2", "queued"]);
    turns.pass(limits.suspendMs);
    turns.turn();
    expect(turns.last("TaskAssigned")).toMatchObject({
      agent: "a1",
      task: "t2",
      receipt: { decidedBy: "probe" },
    });
    turns.turn(turns.report("t2", failed));
    expect(turns.last("AgentSuspended")).toMatchObject({ step: 2, until: turns.at + 2 * limits.suspendMs });
  });

  it("is reinstated when its probe succeeds", () => {
    const turns = suspended();
    turns.pass(limits.suspendMs);
    turns.turn(submit({ id: taskId("probe") }));
    expect(turns.task("probe").open?.agent).toBe("a1");
    turns.turn(turns.report("probe", completed));
    expect(turns.last("AgentReinstated")).toMatchObject({ agent: "a1", kind: "k" });
    expect(turns.agent("a1").suspensionByKind.size).toBe(0);
  });
});
