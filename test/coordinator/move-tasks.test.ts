// Revoking attempts and rescheduling tasks over the wire, against a real leader.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect() });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

/** A connection that loses the first answer on a verb's subject. Then `meanwhile` happens. */
async function aLossyClient(
  verb: "revoke" | "reschedule",
  meanwhile: () => Promise<unknown>,
): Promise<Swarm> {
  const wire = test.hub.connect();
  const request = wire.request.bind(wire);
  let isLost = false;
  wire.request = async (...asked) => {
    const answer = await request(...asked);
    if (isLost || asked[0] !== subjects.project("default", verb)) return answer;
    isLost = true;
    await meanwhile();
    return { kind: "disconnected" };
  };
  return await connect({ swarm: "test", transport: wire });
}

describe("a revoke", () => {
  it("tells the agent, and the task runs elsewhere", async () => {
    const stuck = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    const assignment = await stuck.assignment();
    const other = await test.agent("a2");
    expect(await swarm.revoke("t1")).toEqual({
      taskId: "t1",
      attempt: 1,
      revoked: true,
      state: "queued",
    });
    expect(await stuck.push("revoke")).toMatchObject({
      attempts: [{ task: "t1", attempt: 1 }],
      reason: "an operator revoked the attempt",
    });
    expect(await other.assignment()).toMatchObject({ task: "t1", attempt: 2 });
    expect((await stuck.report(assignment, "revoked")).answers).toEqual([{ ok: true, status: "stale" }]);
    const { attempts, events } = await swarm.story("t1");
    expect(attempts).toMatchObject([{ agent: "a1", ended: "revoked" }, { agent: "a2" }]);
    expect(events.map(({ event }) => event.type)).toContain("AttemptReleased");
  });

  it("of a task that is not running is refused", async () => {
    await swarm.submit({ id: "t1", kind: "nobody" });
    const refusal = (message: string) => ({
      code: "WAGGLE_CONFLICT",
      message: expect.stringContaining(message),
    });
    await expect(swarm.revoke("t1")).rejects.toMatchObject(refusal("task t1 is queued, not running"));
    await expect(swarm.revoke("t1", { attempt: 1 })).rejects.toMatchObject(
      refusal("has had 0 attempts, and has no attempt 1 yet"),
    );
    await swarm.cancel("t1");
    await expect(swarm.revoke("t1")).rejects.toMatchObject(refusal("is cancelled, not running"));
    await expect(swarm.revoke("t9")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
    await expect(swarm.revoke("t1", { project: "red" })).rejects.toMatchObject({
      code: "WAGGLE_UNKNOWN_TASK",
      message: expect.stringContaining("but in project default"),
    });
    await expect(swarm.revoke("t1", { round: 1 } as never)).rejects.toMatchObject({
      code: "WAGGLE_INVALID_MESSAGE",
    });
  });

  it("whose answer is lost is sent again, and leaves the next attempt alone", async () => {
    const one = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    await one.assignment();
    const two = await test.agent("a2");
    await using lossy = await aLossyClient("revoke", () => two.assignment());
    expect(await lossy.revoke("t1")).toMatchObject({ attempt: 1, revoked: false });
    expect(await swarm.taskStatus("t1")).toMatchObject({ attempts: 2, agent: "a2" });
  });

  it("of a filter frees each running task of it", async () => {
    const agent = await test.agent("a1", { maxConcurrent: 2 });
    for (const id of ["t1", "t2", "t3"]) await swarm.submit({ id, kind: "count" });
    await agent.assignment();
    await agent.assignment();
    expect(await swarm.revoke({ agent: "a1" })).toMatchObject([
      { ok: true, taskId: "t1", attempt: 1, revoked: true },
      { ok: true, taskId: "t2", attempt: 1, revoked: true },
    ]);
    await expect(swarm.revoke({ agent: "a1" }, { attempt: 1 })).rejects.toMatchObject({
      field: "attempt",
      message: expect.stringContaining("attempt: only with ids"),
    });
  });
});

describe("a reschedule", () => {
  it("holds a task back, and lets it go", async () => {
    const notBefore = Date.now() + 3_600_000;
    await swarm.submit({ id: "t1", kind: "count" });
    expect(await swarm.project("default").reschedule("t1", { notBefore })).toEqual({
      taskId: "t1",
      round: 1,
      notBefore,
      state: "delayed",
    });
    const agent = await test.agent("a1");
    expect((await swarm.explain("t1")).waiting?.obstacles).toMatchObject([
      { reason: "not-before", until: notBefore, isRetry: false },
    ]);
    expect((await swarm.story("t1")).spec).toMatchObject({ notBefore });
    expect(await swarm.reschedule("t1", { notBefore: new Date() })).toMatchObject({ state: "queued" });
    expect(await agent.assignment()).toMatchObject({ task: "t1" });
    expect((await swarm.story("t1")).waits.map(({ state }) => state)).toEqual([
      "queued",
      "delayed",
      "queued",
    ]);
  });

  it("of a running, ended or unknown task, or to a bad time, is refused", async () => {
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    const assignment = await agent.assignment();
    const notBefore = Date.now() + 60_000;
    const refused = async (message: string, code = "WAGGLE_CONFLICT") =>
      await expect(swarm.reschedule("t1", { notBefore })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(message),
      });
    await refused("task t1 is running already: only a waiting task can be rescheduled. `waggle revoke t1`");
    await agent.complete(assignment);
    await refused("task t1 has completed");
    await swarm.submit({ id: "late", kind: "nobody", deadline: notBefore - 1 });
    await expect(swarm.reschedule("late", { notBefore })).rejects.toMatchObject({
      code: "WAGGLE_INVALID_VALUE",
      field: "notBefore",
      message: expect.stringContaining("it would expire before it may start"),
    });
    await expect(swarm.reschedule("t9", { notBefore })).rejects.toMatchObject({
      code: "WAGGLE_UNKNOWN_TASK",
    });
    for (const bad of [undefined, "soon", Number.NaN, new Date("never"), -1])
      await expect(swarm.reschedule("late", { notBefore: bad } as never)).rejects.toMatchObject({
        code: "WAGGLE_INVALID_MESSAGE",
        field: "notBefore",
      });
  });

  it("whose answer is lost is answered the same, though the task runs now", async () => {
    await swarm.submit({ id: "t1", kind: "count", notBefore: Date.now() + 3_600_000 });
    const agent = await test.agent("a1");
    await using lossy = await aLossyClient("reschedule", () => agent.assignment());
    expect(await lossy.reschedule("t1", { notBefore: Date.now() })).toMatchObject({ state: "assigned" });
  });

  it("of a filter has a result for each waiting task", async () => {
    for (const id of ["t1", "t2"]) await swarm.submit({ id, kind: "nobody" });
    await swarm.submit({ id: "t3", kind: "nobody", project: "red" });
    const notBefore = Date.now() + 60_000;
    const results = await swarm.reschedule({ kind: "nobody" }, { notBefore });
    expect(results).toMatchObject(
      ["t1", "t2", "t3"].map((taskId) => ({ ok: true, taskId, state: "delayed" })),
    );
  });
});
