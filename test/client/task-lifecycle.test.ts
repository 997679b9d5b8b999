// A task through the client, against a real coordinator and an obedient agent.

import { lastValueFrom, takeWhile, toArray } from "rxjs";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskUpdate } from "../../src/client/task-updates.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { Gate } from "../support/gate.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect(), user: "ann" });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

/** Every update up to and including the named update. */
function updatesUntil(updates: Promise<TaskUpdate[]>): Promise<TaskUpdate["type"][]> {
  return updates.then((all) => all.map(({ type }) => type));
}

describe("submitting", () => {
  it("is acknowledged with its place in the journal, and idempotent by id", async () => {
    const first = await swarm.submit({ id: "t1", kind: "count", payload: "a" });
    const again = await swarm.submit({ id: "t1", kind: "count", payload: "a" });
    expect(first.ack).toMatchObject({ taskId: "t1", term: 1, duplicate: false });
    expect(first.ack?.idx).toBeGreaterThan(1);
    expect(again.ack).toMatchObject({ taskId: "t1", duplicate: true });
    await expect(swarm.submit({ id: "t1", kind: "count", payload: "b" })).rejects.toMatchObject({
      code: "WAGGLE_CONFLICT",
    });
  });

  it("of an unserved kind warns, or refuses with failFast", async () => {
    await test.agent("a1", { kinds: ["count"] });
    const { ack } = await swarm.submit({ kind: "cuont" });
    expect(ack?.warnings).toEqual([{ code: "no-agent-serves-kind", nearMisses: ["count"] }]);
    await expect(swarm.submit({ kind: "cuont" }, { failFast: true })).rejects.toMatchObject({
      code: "WAGGLE_NO_CAPABLE_AGENT",
      field: "kind",
    });
  });

  it("of an invalid task names the field", async () => {
    await expect(swarm.submit({ kind: "no spaces" })).rejects.toMatchObject({
      code: "WAGGLE_INVALID_MESSAGE",
      field: "kind",
    });
  });
});

describe("a handle", () => {
  it("gives the result as text, JSON and bytes", async () => {
    const agent = await test.agent("a1");
    const [text, json, bytes] = await Promise.all(
      ["t1", "t2", "t3"].map((id) => swarm.submit({ id, kind: "count" })),
    );
    await agent.report(await agent.assignment(), "completed", { result: "five ✓", tokens: 12 });
    await agent.report(await agent.assignment(), "completed", { result: '{"lines":5}' });
    await agent.report(await agent.assignment(), "completed", { result: "AP8=", encoding: "base64" });
    const result = await text?.result();
    expect(result?.text()).toBe("five ✓");
    expect(result).toMatchObject({ attempts: 1, agent: "a1", tokens: 12, taskId: "t1" });
    expect((await json?.result())?.json<{ lines: number }>().lines).toBe(5);
    expect([...((await bytes?.result())?.bytes() ?? [])]).toEqual([0, 255]);
    expect(() => result?.json()).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_MESSAGE" }));
  });

  it("shows all updates: assigned, running, progress, failed, retried, ended", async () => {
    const agent = await test.agent("a1");
    const other = await test.agent("a2", { kinds: ["other"] });
    const handle = await swarm.submit({ id: "t1", kind: "count" });
    const updates = lastValueFrom(handle.events$.pipe(toArray()));
    const first = await agent.assignment();
    await agent.heartbeat([{ task: "t1", attempt: 1 }], 1);
    const progressed = lastValueFrom(
      handle.events$.pipe(
        takeWhile(({ type }) => type !== "progress", true),
        toArray(),
      ),
    );
    await test.client.status(); // both subscribe before the report is made
    const progress = {
      incarnation: "a1-1",
      project: "default",
      task: "t1",
      attempt: 1,
      fraction: 0.5,
      message: "half",
    };
    agent.transport.publish(subjects.agent("_", "a1", "progress"), Buffer.from(JSON.stringify(progress)));
    expect(await updatesUntil(progressed)).toContain("progress");
    await agent.report(first, "infrastructure", { error: "quota" });
    await agent.complete(await agent.assignment(), "5");

    const all = await updates;
    expect(all.map(({ type }) => type).filter((type) => type !== "running" && type !== "progress")).toEqual([
      "submitted",
      "assigned",
      "attempt-failed",
      "assigned",
      "ended",
    ]);
    expect(all).toContainEqual({ type: "progress", attempt: 1, agent: "a1", fraction: 0.5, message: "half" });
    expect(all.find(({ type }) => type === "running")).toMatchObject({ attempt: 1, agent: "a1" });
    expect(all.find(({ type }) => type === "attempt-failed")).toMatchObject({
      class: "infrastructure",
      error: "quota",
    });
    expect(all.find(({ type }) => type === "assigned")).toMatchObject({ receipt: { feasible: 1 } });
    expect(all.at(-1)).toMatchObject({ outcome: { state: "completed", result: "5" } });
    expect(other.id).toBe("a2");
  });

  it("shows a report of progress that came before the journal behind the assignment of its attempt", async () => {
    const gate = new Gate();
    const transport = test.hub.connect();
    const request = transport.request.bind(transport);
    transport.request = async (subject, ...rest) => {
      if (subject.endsWith("query.events")) await gate.opened;
      return await request(subject, ...rest);
    };
    const slow = await connect({ swarm: "test", transport });
    onTestFinished(() => slow.close());
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    const updates = lastValueFrom(slow.task("t1").events$.pipe(toArray()));
    const heard = lastValueFrom(
      swarm
        .task("t1")
        .events$.pipe(takeWhile((update) => update.type !== "progress" || update.fraction !== 0.5, true)),
    );
    const assigned = await agent.assignment();
    await agent.heartbeat([{ task: "t1", attempt: 1 }], 1);
    for (const fraction of [0.25, 0.5]) {
      await test.client.status(); // both subscribe before a report is made
      const report = { incarnation: "a1-1", project: "default", task: "t1", attempt: 1, fraction };
      agent.transport.publish(subjects.agent("_", "a1", "progress"), Buffer.from(JSON.stringify(report)));
    }
    await heard;
    await test.client.status();
    gate.open();
    await agent.report(assigned, "completed", { result: "5" });
    const shown = (await updates).filter(({ type }) => type !== "running");
    expect(shown.map(({ type }) => type)).toEqual(["submitted", "assigned", "progress", "ended"]);
    expect(shown[2]).toMatchObject({ attempt: 1, fraction: 0.5 });
  });

  it("by id alone shows all updates of an ended task", async () => {
    const agent = await test.agent("a1");
    await test.client.submit([{ id: "t1", kind: "count" }]);
    await agent.complete(await agent.assignment());
    const types = (await lastValueFrom(swarm.task("t1").events$.pipe(toArray()))).map(({ type }) => type);
    expect(types.filter((type) => type !== "running")).toEqual(["submitted", "assigned", "ended"]);
  });

  it("of an unknown task ends with WAGGLE_UNKNOWN_TASK", async () => {
    await expect(lastValueFrom(swarm.task("t1").events$)).rejects.toMatchObject({
      code: "WAGGLE_UNKNOWN_TASK",
    });
    await expect(swarm.task("t1").cancel()).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
    await expect(swarm.story("t1")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
  });
});

describe("cancelling", () => {
  it("wins while the task lives, loses afterwards, and may be repeated", async () => {
    const agent = await test.agent("a1");
    const waiting = await swarm.submit({ kind: "nobody-does-this" });
    const done = await swarm.submit({ kind: "count" });
    await agent.complete(await agent.assignment());
    await done.result();
    expect(await waiting.cancel()).toEqual({ taskId: waiting.id, cancelled: true, state: "cancelled" });
    expect(await swarm.cancel(waiting.id)).toMatchObject({ cancelled: true });
    expect(await done.cancel()).toEqual({ taskId: done.id, cancelled: false, state: "completed" });
    await expect(waiting.result()).rejects.toMatchObject({ code: "WAGGLE_TASK_CANCELLED" });
  });
});

describe("looking and operating", () => {
  it("status shows agents and queues", async () => {
    await test.agent("a1");
    await swarm.submit({ kind: "nobody-does-this", project: "p1" });
    const status = await swarm.status();
    expect(status).toMatchObject({ swarm: "test", leader: "c1", tasks: { queued: 1 } });
    expect(status.agents.map(({ id }) => id)).toEqual(["a1"]);
    expect(status.projects).toMatchObject([{ project: "p1", users: [{ user: "ann" }] }]);
  });

  it("drain and undrain reach the agent; an unknown agent is an error", async () => {
    const agent = await test.agent("a1");
    await swarm.drain("a1");
    await agent.push("drain");
    expect((await swarm.status()).agents[0]?.draining).toBe(true);
    await swarm.undrain("a1");
    expect((await swarm.status()).agents[0]?.draining).toBe(false);
    await expect(swarm.drain("a9")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_AGENT" });
  });

  it("a story tells attempts with receipts, waits and events, however it ends", async () => {
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    await agent.report(await agent.assignment(), "infrastructure", { error: "quota" });
    await agent.complete(await agent.assignment());
    const story = await swarm.story("t1");
    expect(story).toMatchObject({
      state: "completed",
      status: { state: "completed", attempts: 2 },
      spec: { id: "t1", kind: "count", user: "ann" },
      attempts: [
        { attempt: 1, agent: "a1", ended: "infrastructure", error: "quota", receipt: { feasible: 1 } },
        { attempt: 2, agent: "a1", ended: "completed" },
      ],
    });
    expect(story.waits.every(({ to }) => to !== undefined)).toBe(true);
    expect(story.events.map(({ event }) => event.type)).toEqual(
      expect.arrayContaining(["TaskSubmitted", "TaskAssigned", "AttemptFailed", "TaskCompleted"]),
    );
    expect((await swarm.story((await swarm.submit({ kind: "nobody" })).id)).state).toBe("queued");
  });
});

describe("a new leader", () => {
  it("pushes outcomes that the old leader owed", async () => {
    const agent = await test.agent("a1");
    const handle = await swarm.submit({ id: "t1", kind: "count" });
    const assignment = await agent.assignment();
    const next = await test.startAnother("c2");
    await test.coordinator.stop();
    await next.whenLeading();
    await agent.complete(assignment, "5");
    expect((await handle.result()).text()).toBe("5");
  });
});

it("own inbox prefixes get answers: agents, clients and coordinators", async () => {
  const hub = new MemoryHub({ inboxPrefix: "_INBOX_ann" });
  const there = await startTestSwarm({ hub });
  const connected = await connect({ swarm: "test", transport: hub.connect() });
  await connected.agent({ kinds: ["count"], handler: () => "done" });
  expect((await (await connected.submit({ kind: "count" })).result()).text()).toBe("done");
  await connected.close();
  await there.stop();
});
