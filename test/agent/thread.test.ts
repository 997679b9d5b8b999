// The stand-in over a real server: a handler may block the main thread without losing heartbeats.

import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { type Agent, type AgentOptions, startAgent } from "../../src/agent/agent.ts";
import { UnreachableError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";

const [server] = natsServersFor("an agent's thread");
const heartbeatMs = 200;
/** Longer than a busy machine lets a thread wait for the processor… */
const leaseTtlMs = 5_000;
/** …and shorter than the handler blocks: without the stand-in the lease would end. */
const blockedMs = 6_000;
/** Of thirty; without the stand-in there is none. */
const heartbeatsMin = 3;

let running: RunningNatsServer | undefined;
let leader: Worker | undefined;
let agent: Agent | undefined;
afterEach(async () => {
  await agent?.stop();
  await leader?.terminate();
  await running?.stop();
  agent = undefined;
});

async function start(options: Partial<AgentOptions> = {}) {
  running = await startNatsServer({ binary: server?.path ?? "" });
  const { url } = running;
  const messages = leaderThread(url);
  await messages.next("ready");
  const lines: string[] = [];
  agent = await startAgent(
    { id: "a1", kinds: ["count"], handler: () => "done", ...options },
    {
      swarm: swarmId("test"),
      connection: { kind: "server", server: { urls: [url] } },
      logger: pino({ level: "debug" }, { write: (line) => lines.push(line) }),
    },
  );
  return { agent, messages, lines };
}

describe.skipIf(server === undefined)("an agent with a stand-in", () => {
  it("keeps heartbeats, leases, confirmations and logs going while the main thread is blocked", async () => {
    let wasAborted = false;
    let endedAt = 0;
    const { messages } = await start({
      handler: (_, { signal, log }) => {
        const { aborted } = signal;
        log("before");
        block(blockedMs);
        wasAborted = aborted || signal.aborted;
        endedAt = Date.now();
        return "done";
      },
    });
    const { results, heartbeats } = await messages.next("result");
    expect(results).toMatchObject([{ task: "t1", outcome: "completed", result: "done" }]);
    expect(wasAborted).toBe(false);
    const during = heartbeats.filter(({ held }) => held === 1);
    expect(during.length).toBeGreaterThan(heartbeatsMin);
    expect(during.at(-1)).toMatchObject({ seen: 1 });
    const pauses = during.slice(1).map(({ at }, index) => at - (during[index]?.at ?? 0));
    expect(Math.max(...pauses), "no pause in which a lease could end").toBeLessThan(leaseTtlMs);
    const { logs, at } = await messages.next("log");
    expect(logs).toEqual([{ attempt: 1, text: "before\n", droppedBytes: 0 }]);
    expect(at, "answered while the thread was blocked").toBeLessThan(endedAt);
  });

  it("lists a request for slots in every heartbeat after it, so that a leader never takes the slot back", async () => {
    const { messages } = await start({
      handler: async (_, context) => {
        const asked = context.acquire("gpu");
        await delay(heartbeatMs / 10);
        block(10 * heartbeatMs);
        await (await asked).release();
        return "done";
      },
    });
    const { heartbeats, unlisted } = await messages.next("result");
    expect(heartbeats.filter(({ held }) => held === 1).length).toBeGreaterThan(heartbeatsMin);
    expect(unlisted).toBe(0);
  });

  it("drains and leaves; its log lines reach the logger, without credentials", async () => {
    const { agent, messages, lines } = await start();
    await messages.next("result");
    await agent.drain();
    await messages.next("left");
    expect(await agent.closed).toBeUndefined();
    expect(lines.map((line) => JSON.parse(line).msg)).toContain("joined the swarm");
    expect(agent.status()).toBe("offline");
  });

  it("fails to start where there is no server", async () => {
    running = await startNatsServer({ binary: server?.path ?? "" });
    const { url } = running;
    await running.stop();
    const starting = startAgent(
      { id: "a1", kinds: ["count"], handler: () => "done" },
      { swarm: swarmId("test"), connection: { kind: "server", server: { urls: [url] } } },
    );
    await expect(starting).rejects.toBeInstanceOf(UnreachableError);
  });

  it("joins again, by itself, on a server that was restarted", async () => {
    const { agent, messages } = await start();
    await messages.next("result");
    await running?.restart();
    await agent.drain();
    await messages.next("left");
  });
});

interface LeaderMessages {
  ready: object;
  left: object;
  log: { readonly logs: object[]; readonly at: number };
  result: {
    readonly results: object[];
    readonly heartbeats: { at: number; held: number; seen: number }[];
    readonly unlisted: number;
  };
}

/** Blocks this thread. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function leaderThread(url: string) {
  leader = new Worker(new URL("leader-thread.mjs", import.meta.url), {
    workerData: { server: url, agent: "a1", heartbeatMs, leaseTtlMs },
    execArgv: [],
  });
  const heard: { type: string }[] = [];
  let wake: () => void = () => undefined;
  leader.on("message", (message: { type: string }) => {
    heard.push(message);
    wake();
  });
  return {
    async next<Type extends keyof LeaderMessages>(type: Type): Promise<LeaderMessages[Type]> {
      for (;;) {
        const at = heard.findIndex((message) => message.type === type);
        if (at !== -1) return heard.splice(at, 1)[0] as unknown as LeaderMessages[Type];
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
