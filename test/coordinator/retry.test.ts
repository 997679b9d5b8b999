// Retries over the wire, against a real leader: reads of the journal, refusals, and bounds.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { storedBatches } from "../support/stored.ts";
import { startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
let agent: WireAgent;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect() });
  agent = await test.agent("a1");
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

async function failed(id: string, more: object = {}) {
  const handle = await swarm.submit({ id, kind: "count", payload: `of ${id}`, ...more });
  await agent.report(await agent.assignment(), "invalid", { error: "bad" });
  expect(await handle.outcome()).toMatchObject({ state: "failed" });
  return handle;
}

const events = () => storedBatches(test.store).flat();

describe("a retry", () => {
  it("runs the same payload under the same id, and a wait after it is for the new round", async () => {
    const handle = await failed("t1", { deadline: Date.now() + 3_600_000 });
    expect(await swarm.retry("t1")).toEqual({ taskId: "t1", round: 2 });
    const assignment = await agent.assignment();
    expect(assignment).toMatchObject({ task: "t1", attempt: 2, payload: "of t1" });
    const [old, fresh] = [handle.result(), swarm.task("t1").result()];
    await agent.report(assignment, "completed", { result: "done" });
    expect((await old).text()).toBe("done");
    expect((await fresh).text()).toBe("done");
    expect(await handle.outcome()).toMatchObject({ state: "completed", round: 2, attempts: 2 });
    const retried = events().find((event) => event.type === "TaskRetried");
    expect(retried).toMatchObject({ round: 2, task: { payload: "of t1" } });
    expect(retried).not.toHaveProperty("task.deadline");
  });

  it("reads the payload of a later round from the retry before, with the deadline that it was given", async () => {
    const handle = await failed("t1");
    const deadline = Date.now() + 3_600_000;
    await handle.retry({ deadline });
    await agent.report(await agent.assignment(), "invalid", { error: "bad again" });
    expect(await handle.outcome()).toMatchObject({ state: "failed", round: 2 });
    await handle.retry();
    const retries = events().filter((event) => event.type === "TaskRetried");
    expect(retries.map(({ task, round }) => [round, task.deadline])).toEqual([
      [2, deadline],
      [3, undefined],
    ]);
    expect(await agent.assignment()).toMatchObject({ attempt: 3, payload: "of t1" });
  });

  it("with a lost answer is asked again, and opens one round", async () => {
    await failed("t1");
    const ask = { tasks: [{ task: "t1", round: 2 }] };
    const subject = subjects.project("default", "retry");
    const answers = await Promise.all([test.client.ask(subject, ask), test.client.ask(subject, ask)]);
    for (const each of answers) expect(each).toMatchObject({ answers: [{ ok: true, task: "t1", round: 2 }] });
    await agent.report(await agent.assignment(), "completed", { result: "" });
    expect(await swarm.retry("t1", { round: 2 })).toEqual({ taskId: "t1", round: 2 });
    expect(events().filter(({ type }) => type === "TaskRetried")).toHaveLength(1);
  });

  it("is refused for a completed, live, unknown or another project's task", async () => {
    const handle = await swarm.submit({ id: "t1", kind: "count" });
    const assignment = await agent.assignment();
    await expect(swarm.retry("t1")).rejects.toThrow(/task t1 has not ended \(it is (assigned|running)\)/);
    await agent.report(assignment, "completed", { result: "" });
    await handle.outcome();
    await expect(swarm.retry("t1")).rejects.toMatchObject({
      code: "WAGGLE_CONFLICT",
      message: expect.stringContaining("task t1 has completed"),
    });
    await expect(swarm.retry("nobody")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
    await failed("t2");
    await expect(swarm.retry("t2", { project: "other" })).rejects.toMatchObject({
      code: "WAGGLE_UNKNOWN_TASK",
    });
    for (const options of [
      { round: 1 },
      { round: Number.NaN },
      { rounds: 2 },
      { deadline: "soon" },
    ] as object[])
      await expect(swarm.retry("t2", options)).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE" });
  });

  it("waits for its turn within bounds", async () => {
    await failed("t1");
    const subject = subjects.project("default", "retry");
    const many = Array.from({ length: 2 * limits.retriesWaitingMax }, () =>
      test.client.ask(subject, { tasks: [{ task: "t1", round: 3 }] }),
    );
    const codes = (await Promise.all(many)).map((answer) => (answer as { code?: string }).code ?? "answered");
    expect(new Set(codes)).toEqual(new Set(["answered", "WAGGLE_BACKPRESSURE"]));
  });

  it("of more than fits one turn opens every round", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `big${n}`);
    for (const id of ids) await failed(id, { payload: "x".repeat(100_000) });
    const answer = await test.client.ask(subjects.project("default", "retry"), {
      tasks: [...ids.map((task) => ({ task, round: 2 })), { task: "bad" }],
    });
    expect(answer).toMatchObject({ answers: [...ids.map((task) => ({ ok: true, task })), { ok: false }] });
    expect(events().filter(({ type }) => type === "TaskRetried")).toHaveLength(ids.length);
  });
});
