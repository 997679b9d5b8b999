// Slots of a handler: acquired through its attempt, charged to its task, and found by code without the context.

import { setImmediate as soon } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Slot } from "../../src/agent/slots.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { currentAttempt, type HandlerContext } from "../../src/index.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;
let client: Swarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
  await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", slots: 1 });
  const budget = { tokens: 10_000, windowMs: 60_000 };
  await swarm.client.ask(subjects.operator("project"), { project: "acme", budget });
  client = await connect({ transport: swarm.hub.connect(), swarm: "test", clock });
});
afterEach(async () => {
  const closed = client.close();
  await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
  await closed;
  await swarm.stop();
});

/** Runs one task. @returns what the handler returned */
async function run(handler: (context: HandlerContext) => unknown): Promise<unknown> {
  const results: unknown[] = [];
  await client.agent({
    id: "worker",
    kinds: ["count"],
    handler: async (_, context) => {
      results.push(await handler(context));
    },
  });
  const task = await client.submit({ kind: "count", id: "t1", project: "acme", user: "ann", tokens: 50 });
  await task.result();
  return results[0];
}

async function status() {
  const { resources, projects } = await swarm.client.status();
  const [gpu] = resources;
  const budget = projects.find(({ project }: { project: string }) => project === "acme")?.budget;
  return { gpu, budget };
}

it("a slot carries the agent and the served task, and so does the status", async () => {
  const slot = (await run(async (context) => {
    const held = await context.acquire("gpu", { label: "draft", as: "writer" });
    expect((await status()).gpu.holders).toMatchObject([
      {
        agent: "worker",
        as: "writer",
        label: "draft",
        project: "acme",
        user: "ann",
        task: { project: "acme", task: "t1", attempt: 1 },
      },
    ]);
    return held;
  })) as Slot;
  expect(slot).toMatchObject({
    agent: "worker",
    as: "writer",
    task: { project: "acme", task: "t1", attempt: 1 },
    isReleased: true,
  });
});

it("tokens of its slots are the attempt's: the reports, or else the estimates", async () => {
  await run(async (context) => {
    const first = await context.acquire("gpu", { tokens: 400 });
    expect((await status()).budget).toMatchObject({ reserved: 50 });
    first.report({ inputTokens: 30, outputTokens: 12 });
    await first.release();
    await context.acquire("gpu", { tokens: 8 }); // forgotten: released without a report
  });
  expect((await status()).budget).toMatchObject({ spent: 50, reserved: 0 });
});

it("a slot without tokens leaves the attempt unreported: its own estimate is spent", async () => {
  await run(async (context) => {
    await using _slot = await context.acquire("gpu");
  });
  expect((await status()).budget).toMatchObject({ spent: 50 });
});

it("a handler may not charge another project", async () => {
  const refusal = run((context) => context.acquire("gpu", { project: "other" }).catch((error) => error));
  expect(await refusal).toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "project" });
});

it("the signal of a forgotten slot is aborted when its handler ends", async () => {
  const slot = (await run(async (context) => await context.acquire("gpu"))) as Slot;
  expect(slot.signal.reason).toMatchObject({ code: "WAGGLE_HANDLE_ENDED" });
  expect([slot.isReleased, slot.touch()]).toEqual([true, false]);
});

it("a failed handler says nothing about the resources of its forgotten slots", async () => {
  await client.agent({
    kinds: ["fails"],
    handler: async (task, context) => {
      await context.acquire("gpu");
      if (task.payload === "fail") throw new Error("no JSON");
    },
  });
  for (const payload of ["fail", "complete"])
    await (await client.submit({ kind: "fails", payload, maxAttempts: 1 })).outcome();
  const released: unknown[] = [];
  for await (const { event } of client.events({ types: ["SlotReleased"] })) released.push(event);
  expect(released).toMatchObject([{ unanswered: true }, { reason: "released" }]);
  expect(released[1]).not.toHaveProperty("unanswered");
});

it("currentAttempt finds the handler through its calls, and nothing outside and afterwards", async () => {
  expect(currentAttempt()).toBeUndefined();
  let late: Promise<unknown> | undefined;
  let end: (() => void) | undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  await run(async (context) => {
    await soon();
    expect(currentAttempt()).toBe(context);
    late = ended.then(() => currentAttempt());
  });
  end?.();
  expect(await late).toBeUndefined();
});

it("currentAttempt tells two handlers of one agent apart", async () => {
  const seen: (string | undefined)[] = [];
  await client.agent({
    kinds: ["pair"],
    maxConcurrent: 2,
    handler: async (task) => {
      await soon();
      seen.push(`${task.id} ${currentAttempt()?.task.id}`);
    },
  });
  const tasks = await Promise.all(["a", "b"].map((id) => client.submit({ kind: "pair", id })));
  await Promise.all(tasks.map((task) => task.result()));
  expect(seen.toSorted()).toEqual(["a a", "b b"]);
});

it("currentAttempt is found within a generator", async () => {
  const seen: unknown[] = [];
  await client.agent({
    kinds: ["stream"],
    handler: async function* (task) {
      yield "one";
      await soon();
      seen.push(currentAttempt()?.task.id === task.id);
    },
  });
  await (await client.submit({ kind: "stream" })).result();
  expect(seen).toEqual([true]);
});

it("an agent wraps work, and hands out tickets", async () => {
  const agent = await client.agent({ id: "worker", kinds: [], handler: () => undefined });
  const holders = await agent.wrap(async () => (await status()).gpu.holders, {
    resource: "gpu",
    as: "critic",
  });
  expect(holders).toMatchObject([{ agent: "worker", as: "critic" }]);
  const nested = agent.wrap(() => agent.acquire("gpu"), { resource: "gpu" });
  await expect(nested).rejects.toMatchObject({ code: "WAGGLE_ACQUIRE_ORDER" });
  const ticket = await agent.acquireStart("gpu", { tokens: 10, project: "acme" });
  expect(ticket).toEqual({ handle: expect.any(String), resources: ["gpu"], agent: "worker" });
  await agent.releaseHandle(ticket, { totalTokens: 4 });
  expect(await status()).toMatchObject({ gpu: { inUse: 0 }, budget: { spent: 4 } });
});

it("a ticket ended by a refusal puts the resource on hold, also from a different process", async () => {
  const agent = await client.agent({ id: "worker", kinds: [], handler: () => undefined });
  const refused = { retryAfterMs: 60_000, reason: "429" };
  const held = async () => (await client.status()).holds?.map(({ name, by, reason }) => [name, by, reason]);
  const ticket = await agent.acquireStart("gpu");
  await expect(
    agent.releaseHandle(ticket, undefined, { refused: { ...refused, resource: "disk" } }),
  ).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "resource" });
  await agent.releaseHandle(ticket, undefined, { refused });
  expect(await held()).toEqual([["gpu", "agent", "429"]]);
  await client.unhold({ resource: "gpu" });
  const own = await client.acquireStart("gpu");
  await client.releaseHandle(own.handle, { totalTokens: 4 }, { refused });
  expect(await held()).toEqual([["gpu", "agent", "429"]]);
});

describe("a resource on hold for longer than the handler's task may take", () => {
  beforeEach(async () => {
    await swarm.client.ask(subjects.operator("hold"), { on: "resource", name: "gpu", forMs: 20_000 });
  });

  it("rejects acquire at once, with what a handler needs for another way", async () => {
    const seen: unknown[] = [];
    await client.agent({
      id: "worker",
      kinds: ["count"],
      handler: (_, context) =>
        context.acquire("gpu").catch((error: unknown) => {
          seen.push(error);
        }),
    });
    const task = await client.submit({ kind: "count", timeoutMs: 3_000 });
    await task.result();
    const until = new Date(clock.now() + 20_000);
    expect(seen).toEqual([
      expect.objectContaining({ code: "WAGGLE_ON_HOLD", resource: "gpu", until, name: "OnHoldError" }),
    ]);
  });

  it("costs no attempt where the handler lets the error pass, and the tasks wait for the hold", async () => {
    let starts = 0;
    await client.agent({
      id: "worker",
      kinds: ["count"],
      handler: async (_, context) => {
        starts += 1;
        await using _slot = await context.acquire("gpu");
      },
    });
    const spec = { kind: "count", timeoutMs: 3_000, maxAttempts: 1 };
    const tasks = await Promise.all(Array.from({ length: 6 }, () => client.submit(spec)));
    await clock.settle();
    expect(starts).toBe(1);
    const { holds } = await client.status();
    expect(holds).toMatchObject([{ on: "resource", name: "gpu" }]);
    await clock.advance(20_100);
    for (const task of tasks) await task.result();
    expect(starts).toBe(7);
  });

  it("rejects a request outside of handlers, and ends one that waits when the hold comes", async () => {
    const onHold = { code: "WAGGLE_ON_HOLD", resource: "gpu" };
    await expect(client.acquire("gpu", { timeoutMs: 5_000 })).rejects.toMatchObject(onHold);
    await client.unhold({ resource: "gpu" });
    const slot = await client.acquire("gpu");
    const waiting = expect(client.acquire("gpu", { timeoutMs: 5_000 })).rejects.toMatchObject(onHold);
    await clock.settle();
    await slot.release({ refused: { retryAfterMs: 9_000 } });
    await waiting;
  });
});

it("explain names the slots that a running attempt waits for, and the hold on their resource", async () => {
  const seen: unknown[] = [];
  const explained = async () => {
    const { slots } = await client.explain("t1");
    seen.push(slots);
  };
  await run(async (context) => {
    await (await context.acquire("gpu", { holder: "first" })).release();
    const held = await client.acquire("gpu");
    await explained();
    const waiting = context.acquire("gpu", { holder: "next" });
    await clock.settle();
    await explained();
    await held.release({ refused: { retryAfterMs: 1_000 } });
    await explained();
    await clock.advance(1_100);
    await (await waiting).release();
  });
  expect(seen).toEqual([
    undefined,
    [{ resources: ["gpu"], sinceMs: expect.any(Number) }],
    [
      {
        resources: ["gpu"],
        sinceMs: expect.any(Number),
        onHold: { resource: "gpu", until: expect.any(Number) },
      },
    ],
  ]);
});
