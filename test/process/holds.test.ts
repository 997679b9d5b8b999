// A provider with a quota of 10 requests per 3 s, and 20 tasks for its one agent, with real processes: at most 22
// attempts, and every task completes. Also when the coordinator is killed during the hold, and when calls of a model
// under slots are refused in several processes. And a provider that names no time, to a program without an agent.

import { spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { swarmFetch } from "../../src/adapters/openai.ts";
import { InfrastructureError } from "../../src/agent/handler.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { findNatsServers } from "../support/nats-server.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const QUOTA = 10;
const RESET_MS = 3_000;
const TASKS = 20;
const SLOTS = 4;

const modelAgent = fileURLToPath(new URL("./model-agent.mjs", import.meta.url));

const brokers: readonly { name: string; binary: string | undefined }[] = [
  { name: "the development broker", binary: undefined },
  ...findNatsServers()
    .slice(0, 1)
    .map(({ path, version }) => ({ name: `JetStream ${version}`, binary: path })),
];

/** Refuses requests above the quota with the time until its reset. The first window begins with the first request. */
class Provider {
  requests = 0;
  #used = 0;
  #resetAt = 0;

  /** @returns ms until the reset; undefined: the request was served */
  ask(): number | undefined {
    this.requests += 1;
    const now = Date.now();
    if (now >= this.#resetAt) {
      this.#used = 0;
      this.#resetAt = now + RESET_MS;
    }
    this.#used += 1;
    return this.#used <= QUOTA ? undefined : this.#resetAt - now;
  }
}

describe.each(brokers)("20 tasks against a quota of 10 on $name", ({ binary }) => {
  let workplace: Workplace;
  let swarm: Swarm;
  let server: Server | undefined;
  const agents: RunningWaggle[] = [];
  afterEach(async () => {
    await Promise.all(agents.splice(0).map((agent) => agent.kill("SIGKILL")));
    server?.close();
    await swarm?.close();
    await workplace?.clear();
  });

  async function begin(): Promise<RunningWaggle> {
    workplace = await Workplace.make(binary);
    const coordinator = await startLeading(workplace);
    swarm = await connect({ dataFolder: workplace.dataFolder });
    return coordinator;
  }

  /** @returns the URL of the provider */
  async function serve(
    provider: Provider,
    headersOf: (waitMs: number) => Record<string, string>,
  ): Promise<string> {
    server = createServer((request, response) => {
      request.resume().once("end", () => {
        const waitMs = provider.ask();
        if (waitMs === undefined) return response.end('{"usage":{"total_tokens":1}}');
        response.writeHead(429, headersOf(waitMs)).end("slow down");
      });
    });
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/`;
  }

  async function results(): Promise<string[]> {
    const handles = await Promise.all(
      Array.from({ length: TASKS }, (_, n) => swarm.submit({ id: `t${n}`, kind: "ask", payload: `${n}` })),
    );
    return await Promise.all(handles.map(async (handle) => (await handle.result()).text()));
  }

  it("take at most 22 attempts, and none counts", async () => {
    await begin();
    const provider = new Provider();
    const agent = await swarm.agent({
      id: "a1",
      kinds: ["ask"],
      type: "claude",
      maxConcurrent: 2,
      handler: (task) => {
        const waitMs = provider.ask();
        if (waitMs === undefined) return task.text();
        throw new InfrastructureError("429 quota used up", { retryAfterMs: waitMs, scope: "type" });
      },
    });
    expect(await results()).toEqual(Array.from({ length: TASKS }, (_, n) => `${n}`));
    expect(provider.requests).toBeLessThanOrEqual(22);
    expect(await eventsOf(swarm)).toMatchObject({ HoldElapsed: 1, HoldEnded: 1, TaskCompleted: TASKS });
    await agent.drain();
  });

  it("under four slots, from two processes without an operator's part, cost a window its quota and four calls", async () => {
    await begin();
    await swarm.setResource("gpt-4o", { slots: SLOTS });
    const provider = new Provider();
    const url = await serve(provider, (waitMs) => ({ "retry-after-ms": `${waitMs}` }));
    for (const id of ["m1", "m2"]) {
      const agent = new RunningWaggle(spawn(process.execPath, [modelAgent, workplace.dataFolder, id, url]));
      agents.push(agent);
      await agent.says("joined");
    }
    expect(await results()).toHaveLength(TASKS);
    expect(provider.requests).toBeLessThanOrEqual(TASKS + SLOTS);
    expect((await swarm.status()).resources).toMatchObject([{ inUse: 0, waiting: 0 }]);
  });

  it("survive the death of the coordinator during the hold, which `Retry-After` set", async () => {
    const first = await begin();
    const provider = new Provider();
    const url = await serve(provider, (waitMs) => ({ "retry-after": `${Math.ceil(waitMs / 1_000)}` }));
    workplace.start("agent", "--kind", "ask", "--id", "h1", "--http", url, "--max-concurrent", "2");
    const placed = firstHold(swarm);
    const done = results();
    expect(await placed).toMatchObject({ on: "agent", name: "h1", by: "agent" });
    await first.kill("SIGKILL");
    await startLeading(workplace);
    expect(await done).toHaveLength(TASKS);
    // The attempts that the killed leader had not recorded may run again.
    expect(provider.requests).toBeLessThanOrEqual(24);
    const status = await workplace.run("health");
    expect(status.stdout).not.toContain("on hold");
  });
});

describe.each(brokers)("a provider that answers 429 without headers, on $name", ({ binary }) => {
  it("is asked three times by a program without an agent, across a fail-over, and then by one probe", async () => {
    const workplace = await Workplace.make(binary);
    const first = await startLeading(workplace);
    const swarm = await connect({ dataFolder: workplace.dataFolder });
    await swarm.setResource("gpt-4o", { slots: 1 });
    let requests = 0;
    let isRefusing = true;
    const server = createServer((request, response) => {
      request.resume().once("end", () => {
        requests += 1;
        response.writeHead(isRefusing ? 429 : 200, { "content-type": "application/json" }).end("{}");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const fetch = swarmFetch(swarm);
    const body = JSON.stringify({ model: "gpt-4o", messages: [] });
    const ask = async () =>
      (await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: "POST", body })).status;
    try {
      expect([await ask(), await ask()]).toEqual([429, 429]);
      await first.kill("SIGKILL");
      await startLeading(workplace);
      expect((await swarm.status()).holds ?? []).toEqual([]);
      expect(await ask()).toBe(429);
      expect((await swarm.status()).holds).toMatchObject([
        { on: "resource", name: "gpt-4o", by: "refusals", reason: "the quota of gpt-4o is used up (429)" },
      ]);
      const health = await workplace.run("health");
      expect(health.stdout).toContain("resource gpt-4o is on hold");
      isRefusing = false;
      const waiting = Promise.all([ask(), ask(), ask()]);
      await expect.poll(async () => (await swarm.status()).resources[0]?.waiting).toBe(3);
      expect(requests).toBe(3);
      expect(await waiting).toEqual([200, 200, 200]);
      expect(await eventsOf(swarm)).toMatchObject({ HoldPlaced: 1, HoldElapsed: 1, HoldEnded: 1 });
    } finally {
      server.close();
      await swarm.close();
      await workplace.clear();
    }
  });
});

async function startLeading(workplace: Workplace): Promise<RunningWaggle> {
  const coordinator = workplace.start("up");
  await coordinator.says("leading");
  return coordinator;
}

async function firstHold(swarm: Swarm): Promise<object> {
  const options = { from: "start", follow: true, types: ["HoldPlaced"] } as const;
  for await (const { event } of swarm.events(options)) return event;
  throw new Error("no hold was placed");
}

async function eventsOf(swarm: Swarm): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const { event } of swarm.events({ from: "start", follow: false }))
    counts[event.type] = (counts[event.type] ?? 0) + 1;
  return counts;
}
