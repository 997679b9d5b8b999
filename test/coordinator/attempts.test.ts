// How attempts end, on the wire and on a manual clock: back-off, dead letters, deadlines, time-outs, stalls, and two
// ends at once.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import type { DonePush, Outcome } from "../../src/protocol/schemas.ts";
import { doneSubject, progressSubject } from "../../src/protocol/subjects.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

const firstBackoffMs = limits.retryBackoffMs / 2;
let clock: ManualClock;
let swarm: TestSwarm;
let outcomes: { next(): Promise<DonePush> };

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock, random: noJitter });
  outcomes = swarm.client.listen<DonePush>(doneSubject("_INBOX.me"));
});
afterEach(() => swarm.stop());

const submit = (...tasks: object[]) =>
  swarm.client.submit(
    tasks.map((task) => ({ kind: "count", ...task })),
    { notify: "_INBOX.me" },
  );
const outcome = async (): Promise<Outcome | undefined> => (await outcomes.next()).ended[0];
const state = async (task: string) => (await swarm.client.task(task)).state;

/** An agent that sends a heartbeat each second of the clock. */
function keepAlive(agent: WireAgent, seen = 0): void {
  const heartbeat = () => {
    void agent.heartbeat([], seen);
    clock.after(limits.heartbeatMs, heartbeat);
  };
  heartbeat();
}

describe("an attempt", () => {
  it("that failed is tried again after its back-off, not before", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1" });
    expect(await agent.report(await agent.assignment(), "failed", { error: "no" })).toMatchObject({
      answers: [{ ok: true, status: "ok" }],
    });
    await clock.advance(firstBackoffMs - 1);
    expect(await state("t1")).toBe("delayed");
    await clock.advance(1);
    expect(await agent.assignment()).toMatchObject({ task: "t1", attempt: 2, token: "1.2" });
  });

  it("that was the last dead-letters the task, with the reason", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", maxAttempts: 2 });
    await agent.report(await agent.assignment(), "failed", { error: "once" });
    await clock.advance(firstBackoffMs);
    await agent.report(await agent.assignment(), "failed", { error: "twice" });
    expect(await outcome()).toMatchObject({
      task: "t1",
      state: "dead-lettered",
      reason: "attempts-exhausted",
      failureClass: "failed",
      error: "twice",
      attempts: 2,
    });
  });

  it("refused by infrastructure costs none, up to its cap", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", maxAttempts: 1 });
    for (let refusals = 0; refusals < limits.infrastructureFailuresMax; refusals += 1) {
      await agent.report(await agent.assignment(), "infrastructure", { error: "quota" });
      expect(await state("t1")).toBe("delayed");
      while ((await state("t1")) === "delayed") {
        await agent.heartbeat([], refusals + 1);
        await clock.advance(limits.heartbeatMs);
      }
    }
    await agent.report(await agent.assignment(), "infrastructure", { error: "quota" });
    expect(await outcome()).toMatchObject({ state: "dead-lettered", reason: "infrastructure-exhausted" });
  });

  it("with invalid input fails its task at once", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", maxAttempts: 9 });
    await agent.report(await agent.assignment(), "invalid", { error: "not a number" });
    expect(await outcome()).toMatchObject({ state: "failed", failureClass: "invalid", attempts: 1 });
  });

  it("that outlives the task's deadline is revoked, and the task has expired", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", deadline: clock.now() + 5_000 });
    const assignment = await agent.assignment();
    await clock.advance(4_999);
    expect(await state("t1")).toBe("assigned");
    await clock.advance(1);
    expect(await outcome()).toMatchObject({ task: "t1", state: "expired", reason: "deadline" });
    expect(await agent.push("revoke")).toMatchObject({
      attempts: [{ task: "t1", attempt: 1 }],
      reason: "the task's deadline passed",
    });
    expect((await agent.complete(assignment)).answers).toEqual([{ ok: true, status: "stale" }]);
  });

  it("that takes too long is revoked, and holds capacity until the agent confirms the stop", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 1 });
    await submit({ id: "t1", timeoutMs: 3_000, maxAttempts: 1 }, { id: "t2" });
    const assignment = await agent.assignment();
    await clock.advance(3_000);
    expect(await agent.push("revoke")).toMatchObject({ attempts: [{ task: "t1", attempt: 1 }] });
    expect(await outcome()).toMatchObject({ task: "t1", state: "dead-lettered", failureClass: "timed-out" });
    expect(await state("t2")).toBe("queued");
    expect((await agent.report(assignment, "revoked")).answers).toEqual([{ ok: true, status: "stale" }]);
    expect(await agent.assignment()).toMatchObject({ task: "t2", number: 2 });
  });

  it("without a time-out in the task is not ended by time", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1" });
    await agent.assignment();
    for (let second = 0; second < 60; second += 1) {
      await agent.heartbeat([{ task: "t1", attempt: 1 }], 1);
      await clock.advance(1_000);
    }
    expect(await state("t1")).toBe("running");
  });
});

describe("a stall limit", () => {
  const held = [{ task: "t1", attempt: 1 }];
  const seconds = async (agent: WireAgent, count: number) => {
    for (let second = 0; second < count; second += 1) {
      await agent.heartbeat(held, 1);
      await clock.advance(1_000);
    }
  };
  const progress = (agent: WireAgent, more: object = {}) => {
    const report = {
      incarnation: "a1-1",
      project: "default",
      task: "t1",
      attempt: 1,
      fraction: 0.5,
      ...more,
    };
    agent.transport.publish(subjects.agent("_", "a1", "progress"), Buffer.from(JSON.stringify(report)));
  };

  it("ends an attempt without progress though its agent lives", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", stallMs: 3_000 });
    await agent.assignment();
    await seconds(agent, 2);
    expect(await state("t1")).toBe("running");
    await seconds(agent, 2);
    expect(await agent.push("revoke")).toMatchObject({
      reason: "no progress was reported within the task's stall limit",
    });
    expect(await swarm.client.task("t1")).toMatchObject({ attempts: 2 });
  });

  it("begins anew with each report of progress, which awaiting clients receive", async () => {
    const updates = swarm.client.listen(progressSubject("_INBOX.me"));
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", stallMs: 3_000 });
    await agent.assignment();
    for (let report = 0; report < 4; report += 1) {
      await seconds(agent, 2);
      progress(agent, { message: "half" });
    }
    expect(await swarm.client.task("t1")).toMatchObject({ state: "running", attempts: 1 });
    expect(await updates.next()).toEqual({
      project: "default",
      task: "t1",
      attempt: 1,
      agent: "a1",
      fraction: 0.5,
      message: "half",
    });
    await seconds(agent, 4);
    expect(await swarm.client.task("t1")).toMatchObject({ attempts: 2 });
  });

  it("begins for a prefetched task once the agent has free capacity", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 1, prefetch: 1 });
    await submit({ id: "first" }, { id: "next", stallMs: 3_000 });
    const first = await agent.assignment();
    await agent.assignment();
    const next = { task: "next", attempt: 1 };
    const pass = async (held: (typeof next)[], ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
        await agent.heartbeat(held, 2);
        await clock.advance(1_000);
      }
    };
    await pass([{ ...next, task: "first" }, next], 10_000);
    expect(await swarm.client.task("next")).toMatchObject({ state: "running", attempts: 1 });
    await agent.report(first, "completed");
    await pass([next], 2_000);
    expect(await swarm.client.task("next")).toMatchObject({ state: "running", attempts: 1 });
    await pass([next], 2_000);
    expect(await agent.push("revoke")).toMatchObject({ attempts: [next] });
  });

  it("begins when the agent stops reporting a wait, though the leader counts free capacity", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", stallMs: 3_000 });
    await agent.assignment();
    const pass = async (waits: { waiting?: true }, ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
        await agent.heartbeat([{ task: "t1", attempt: 1, ...waits }], 1);
        await clock.advance(1_000);
      }
    };
    await pass({ waiting: true }, 10_000);
    await pass({}, 3_000);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "running", attempts: 1 });
    await pass({}, 2_000);
    expect(await agent.push("revoke")).toMatchObject({ attempts: [{ task: "t1", attempt: 1 }] });
  });

  it("begins after a minute all the same: the attempt in front may never end", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", stallMs: 3_000 });
    await agent.assignment();
    const waits = { task: "t1", attempt: 1, waiting: true };
    const pass = async (ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
        await agent.heartbeat([waits], 1);
        await clock.advance(1_000);
      }
    };
    await pass(limits.stallWaitMs);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "running", attempts: 1 });
    await pass(5_000);
    expect(await agent.push("revoke")).toMatchObject({ attempts: [{ task: "t1", attempt: 1 }] });
  });

  it("does not begin anew with progress of another attempt, or of another's", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", stallMs: 3_000 });
    await agent.assignment();
    for (let report = 0; report < 4; report += 1) {
      await seconds(agent, 1);
      progress(agent, { attempt: 7 });
      progress(agent, { incarnation: "a1-0" });
    }
    expect(await swarm.client.task("t1")).toMatchObject({ attempts: 2 });
    expect((await swarm.client.status()).counters).toMatchObject({ "invalid-publish": 8 });
  });
});

describe("a task", () => {
  it("is not assigned before its time", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", notBefore: clock.now() + 700 });
    expect(await state("t1")).toBe("delayed");
    await clock.advance(699);
    expect(await state("t1")).toBe("delayed");
    await clock.advance(1);
    expect(await agent.assignment()).toMatchObject({ task: "t1", attempt: 1 });
  });

  it("waits on though the leader's process slept through the moment", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1", notBefore: clock.now() + 700 });
    clock.stall(5_000);
    await clock.advance(1);
    expect(await agent.assignment()).toMatchObject({ task: "t1" });
  });

  it("is cancelled or completed by the order in which the leader hears of it", async () => {
    const agent = await swarm.agent("a1");
    await submit({ id: "t1" }, { id: "t2" });
    const [first, second] = [await agent.assignment(), await agent.assignment()];
    const cancel = (id: string) =>
      swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: id, round: 1 }] });
    const [cancelled, late] = await Promise.all([cancel("t1"), agent.complete(first)]);
    expect([cancelled.answers, late.answers]).toMatchObject([
      [{ ok: true, state: "cancelled" }],
      [{ status: "stale" }],
    ]);
    const [inTime, tooLate] = await Promise.all([agent.complete(second), cancel("t2")]);
    expect([inTime.answers, tooLate.answers]).toMatchObject([
      [{ status: "ok" }],
      [{ ok: true, state: "completed" }],
    ]);
    expect([await state("t1"), await state("t2")]).toEqual(["cancelled", "completed"]);
  });

  it("goes elsewhere after a failure, even if the failed agent is free", async () => {
    const [one, other] = [await swarm.agent("a1"), await swarm.agent("a2")];
    keepAlive(one, 1);
    keepAlive(other, 1);
    await submit({ id: "t1" });
    await one.report(await one.assignment(), "failed");
    await clock.advance(firstBackoffMs);
    expect(await other.assignment()).toMatchObject({ task: "t1", attempt: 2 });
  });
});
