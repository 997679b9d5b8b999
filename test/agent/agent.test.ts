// Agents in user programs, in a swarm with the production coordinator.

import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Agent, type AgentOptions, startAgent } from "../../src/agent/agent.ts";
import { InfrastructureError, InvalidInputError } from "../../src/agent/handler.ts";
import { InvalidConfigError, UnreachableError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { doneSubject, progressSubject } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { FakeLeader } from "./fake-leader.ts";

let swarm: TestSwarm;
let agents: Agent[] = [];
beforeEach(async () => {
  swarm = await startTestSwarm();
});
afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  agents = [];
  await swarm.stop();
});

async function anAgent(options: Partial<AgentOptions> = {}): Promise<Agent> {
  const agent = await startAgent(
    { id: "a1", kinds: ["count"], handler: (task) => task.payload.toUpperCase(), ...options },
    { swarm: swarmId("test"), connection: { kind: "transport", transport: swarm.hub.connect() } },
  );
  agents.push(agent);
  return agent;
}

interface TestTask {
  readonly id: string;
  readonly kind: string;
  readonly payload?: string;
  readonly maxAttempts?: number;
}

/** Submits and waits for the outcomes, by task. */
async function outcomesOf(tasks: readonly TestTask[]) {
  const done = swarm.client.listen<{ ended: { task: string }[] }>(doneSubject("_INBOX.inbox1"));
  await swarm.client.submit(tasks, { notify: "_INBOX.inbox1" });
  const ended = new Map<string, object>();
  while (ended.size < tasks.length) {
    for (const outcome of (await done.next()).ended) ended.set(outcome.task, outcome);
  }
  return ended;
}

describe("an agent", () => {
  it("runs all its assignments, however many", async () => {
    const agent = await anAgent({ maxConcurrent: 3, prefetch: 2 });
    const tasks = Array.from({ length: 200 }, (_, at) => ({
      id: `t${at}`,
      kind: "count",
      payload: `p${at}`,
    }));
    const ended = await outcomesOf(tasks);
    for (const [id, outcome] of ended) {
      expect(outcome).toMatchObject({
        state: "completed",
        result: id.replace("t", "P"),
        agent: "a1",
        attempts: 1,
      });
    }
    expect(agent.counts()).toEqual({
      running: 0,
      waiting: 0,
      completed: 200,
      failed: 0,
      infrastructure: 0,
      invalid: 0,
      aborted: 0,
    });
  });

  it("ends a task as its handler decides", async () => {
    const attempts = new Map<string, number>();
    await anAgent({
      maxConcurrent: 4,
      handler: (task) => {
        attempts.set(task.id, task.attempt);
        if (task.id === "invalid") throw new InvalidInputError("not a number");
        if (task.id === "quota" && task.attempt === 1) throw new InfrastructureError("come back later");
        if (task.id === "failed") throw new Error("no luck");
        return { seen: task.payload };
      },
    });
    const ended = await outcomesOf([
      { id: "fine", kind: "count", payload: "x" },
      { id: "invalid", kind: "count" },
      { id: "failed", kind: "count", maxAttempts: 1 },
    ]);
    expect(ended.get("fine")).toMatchObject({ state: "completed", result: '{"seen":"x"}' });
    expect(ended.get("invalid")).toMatchObject({ state: "failed", error: "not a number" });
    expect(ended.get("failed")).toMatchObject({ state: "dead-lettered", error: "no luck" });
  });

  it("aborts its handler's signal when the task is cancelled, and takes the next task", async () => {
    const started = resolvers();
    const aborted = resolvers();
    await anAgent({
      handler: (task, { signal }) => {
        if (task.id !== "t1") return "next";
        started.resolve(undefined);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve(signal.reason.message);
            reject(signal.reason);
          });
        });
      },
    });
    await swarm.client.submit([{ id: "t1", kind: "count" }]);
    await started.promise;
    await swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t1", round: 1 }] });
    expect(await aborted.promise).toContain("revoked the attempt");
    expect((await outcomesOf([{ id: "t2", kind: "count" }])).get("t2")).toMatchObject({
      result: "next",
    });
  });

  it("drains: finishes its attempts, takes nothing new, leaves", async () => {
    const { handler, release, started } = held();
    const agent = await anAgent({ handler });
    await swarm.client.submit([
      { id: "t1", kind: "count" },
      { id: "t2", kind: "count" },
    ]);
    await started("t1");
    expect(agent.status()).toBe("busy");
    const drained = agent.drain();
    await setImmediate();
    expect(agent.isDraining()).toBe(true);
    release("t1");
    await drained;
    expect(await agent.closed).toBeUndefined();
    expect(agent.status()).toBe("offline");
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed" });
    expect(await swarm.client.task("t2")).toMatchObject({ state: "queued" });
    expect((await swarm.client.status()).agents).toMatchObject([{ id: "a1", status: "offline" }]);
  });

  it("drains when it is disposed of", async () => {
    const agent = await anAgent();
    await agent[Symbol.asyncDispose]();
    expect((await swarm.client.status()).agents).toMatchObject([{ status: "offline" }]);
  });

  it("stops: aborts started attempts, which count, and returns the rest without a count", async () => {
    const agent = await anAgent({
      maxConcurrent: 2,
      prefetch: 1,
      handler: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const only = (id: string, maxAttempts: number) => ({ id, kind: "count", maxAttempts });
    await swarm.client.submit([only("once", 1), only("twice", 2), only("waits", 1)]);
    await expect.poll(() => agent.counts()).toMatchObject({ running: 2, waiting: 1 });
    await agent.stop();
    expect(agent.counts()).toMatchObject({ running: 0, aborted: 2, infrastructure: 1 });
    const state = async (task: string) => (await swarm.client.task(task)).state;
    expect(await state("once"), "it may have been done in part, and is done at most once").toBe(
      "dead-lettered",
    );
    expect(await state("twice")).toMatch(/queued|delayed/);
    expect(await state("waits"), "it never began").toMatch(/queued|delayed/);
  });

  it("declared lost gets nothing while handlers of the previous incarnation fill the capacity", async () => {
    const { handler, started, release } = held();
    const joins = swarm.client.listen<{ incarnation: string }>(subjects.agent("_", "a1", "join"));
    const agent = await anAgent({ handler });
    await swarm.client.submit([{ id: "t1", kind: "count", payload: "p" }]);
    await started("t1");
    await swarm.client.ask(subjects.agent("_", "a1", "leave"), await joins.next());
    await expect.poll(() => agent.status(), { timeout: 5_000 }).toBe("offline");
    expect((await swarm.client.task("t1")).state, "no agent has free capacity").toBe("queued");
    const other = await anAgent({ id: "a2" });
    await expect.poll(() => other.counts().completed, { timeout: 5_000 }).toBe(1);
    expect(agent.counts()).toMatchObject({ running: 1, waiting: 0 });
    release("t1");
    await expect.poll(() => agent.status()).toBe("ready");
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed", attempts: 2 });
  });

  it("stops with its signal", async () => {
    const abort = new AbortController();
    const agent = await anAgent({ signal: abort.signal });
    abort.abort();
    expect(await agent.closed).toBeUndefined();
  });

  it("is fenced by a second process with its id, and reports it", async () => {
    const { handler, started } = held();
    const first = await anAgent({ handler });
    await swarm.client.submit([{ id: "t1", kind: "count" }]);
    await started("t1");
    await anAgent();
    expect(await first.closed).toMatchObject({ code: "WAGGLE_FENCED" });
  });

  it("reports progress to clients", async () => {
    const { handler, started, contextOf, release } = held();
    await anAgent({ handler });
    const progress = swarm.client.listen<object>(progressSubject("_INBOX.inbox1"));
    const ended = outcomesOf([{ id: "t1", kind: "count" }]);
    await started("t1");
    contextOf("t1").progress(0.5, "half");
    expect(await progress.next()).toMatchObject({ task: "t1", agent: "a1", fraction: 0.5, message: "half" });
    release("t1");
    await ended;
  });
});

describe("starting an agent", () => {
  it("derives a default id from host and kind", async () => {
    const agent = await startAgent(
      { kinds: ["gpt-4.1:x"], handler: () => undefined },
      { swarm: swarmId("test"), connection: { kind: "transport", transport: swarm.hub.connect() } },
    );
    agents.push(agent);
    expect(agent.id).toMatch(/^[A-Za-z0-9_-]+-gpt-4-1-x-[a-z0-9]{8}$/);
    expect(agent.id.length).toBeLessThanOrEqual(64);
  });

  it.each<[Partial<AgentOptions>, string]>([
    [{ id: "a.b" }, "id"],
    [{ kinds: ["two words"] }, "kinds[0]"],
    [{ maxConcurrent: 0 }, "maxConcurrent"],
    [{ maxConcurrent: 1_000_000 }, "maxConcurrent"],
    [{ prefetch: -1 }, "prefetch"],
    [{ labels: { "not a name": "" } }, "labels"],
  ])("refuses %o, naming the option", async (options, field) => {
    const error = await anAgent(options).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidConfigError);
    expect((error as InvalidConfigError).field).toContain(field);
  });

  it.each<[unknown, string | undefined, RegExp]>([
    [undefined, "kinds", /kinds: is missing/],
    [null, undefined, /its options/],
    [{}, "kinds", /kinds: is missing/],
    [{ kinds: "count", handler: () => 1 }, "kinds", /must be a list/],
    [{ kinds: ["count"] }, "handler", /handler: is missing/],
    [{ kinds: ["count"], handler: "wc" }, "handler", /must be a function/],
    [{ kinds: ["count"], handler: () => 1, maxConcurent: 4 }, "maxConcurent", /mean maxConcurrent\?/],
  ])("refuses wrong values of plain JavaScript: %o", async (options, field, message) => {
    const starting = startAgent(options as AgentOptions, {
      swarm: swarmId("test"),
      connection: { kind: "transport", transport: swarm.hub.connect() },
    });
    const error = await starting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidConfigError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  it("waits for a leader until aborted", async () => {
    const hub = new MemoryHub();
    const abort = new AbortController();
    const connection = { kind: "transport", transport: hub.connect() } as const;
    const options = { id: "a1", kinds: ["count"], handler: () => undefined };
    const first = startAgent({ ...options, signal: abort.signal }, { swarm: swarmId("test"), connection });
    abort.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");

    const second = startAgent(options, { swarm: swarmId("test"), connection });
    new FakeLeader(hub);
    agents.push(await second);
  });

  it("fails on a connection that is closed", async () => {
    const transport = swarm.hub.connect();
    await transport.close();
    const starting = startAgent(
      { id: "a1", kinds: ["count"], handler: () => undefined },
      { swarm: swarmId("test"), connection: { kind: "transport", transport } },
    );
    await expect(starting).rejects.toBeInstanceOf(UnreachableError);
  });
});

function resolvers<Value = unknown>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** A handler whose calls end when the test says so. */
function held() {
  type Context = Parameters<AgentOptions["handler"]>[1];
  const calls = new Map<
    string,
    { started: ReturnType<typeof resolvers>; ended: ReturnType<typeof resolvers>; context?: Context }
  >();
  const callOf = (task: string) => {
    const known = calls.get(task) ?? { started: resolvers(), ended: resolvers() };
    calls.set(task, known);
    return known;
  };
  const handler: AgentOptions["handler"] = (task, context) => {
    const call = callOf(task.id);
    call.context = context;
    call.started.resolve(undefined);
    return call.ended.promise;
  };
  return {
    handler,
    started: (task: string) => callOf(task).started.promise,
    release: (task: string) => callOf(task).ended.resolve("done"),
    contextOf: (task: string): Context => callOf(task).context ?? expect.fail(`${task} has not started`),
  };
}
