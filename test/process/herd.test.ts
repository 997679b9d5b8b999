// Two hundred agents that join at the same moment, and lose the server at the same moment: no agent is declared
// lost, and running tasks go on.

import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import type { BareEvent } from "../../src/state/event.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const AGENTS = 200;
const PROCESSES = 4;
/** On a quiet machine, joining takes 0.2 s and reconnecting one second. */
const JOIN_MS_MAX = 3_000;
const RECONNECT_MS_MAX = 6_000;
const [binary] = natsServersFor("a herd of agents");
const agentsFile = fileURLToPath(new URL("./herd-agents.mjs", import.meta.url));

let server: RunningNatsServer;
let workplace: Workplace;
let swarm: Swarm;
let herds: RunningWaggle[];

beforeEach(async () => {
  server = await startNatsServer({ binary: binary?.path ?? "", jetstream: true });
  workplace = await Workplace.make();
  await workplace.start("up", "--nats", server.url).says("leading");
  swarm = await connect({ nats: server.url });
  herds = Array.from({ length: PROCESSES }, (_, n) => {
    const args = ["--import", "tsx", agentsFile, server.url, `h${n}-`, String(AGENTS / PROCESSES)];
    return new RunningWaggle(spawn(process.execPath, args));
  });
  await Promise.all(herds.map((herd) => herd.says("connected")));
});
afterEach(async () => {
  await Promise.all(herds.map((herd) => herd.kill("SIGKILL")));
  await swarm.close();
  await workplace.clear();
  await server.stop();
});

/** Lets all agents join at once. @returns the time until the last had joined, ms */
async function join(): Promise<number> {
  const startedAt = performance.now();
  for (const herd of herds) herd.child.stdin?.write("go\n");
  await Promise.all(herds.map((herd) => herd.says("joined")));
  return performance.now() - startedAt;
}

async function journaled(type: BareEvent["type"]): Promise<{ event: BareEvent; at: number }[]> {
  const found: { event: BareEvent; at: number }[] = [];
  for await (const { event, at } of swarm.events({ from: "start", follow: false }))
    if (event.type === type) found.push({ event, at: Number(at) });
  return found;
}

/** Starts a task on each agent. */
async function occupyAll(ms: number) {
  const tasks = await Promise.all(
    Array.from({ length: AGENTS }, (_, n) =>
      swarm.submit({ id: `t${n}`, kind: "herd", payload: String(ms) }),
    ),
  );
  for await (const { event } of swarm.events({ from: "start", follow: true })) {
    if (event.type !== "AssignmentsConfirmed") continue;
    const { tasks: counts } = await swarm.status();
    if (counts["running"] === AGENTS) return tasks;
  }
  throw new Error("the events ended");
}

/** Resolves when each agent has sent one more heartbeat. */
async function sendAllHeartbeats(): Promise<void> {
  const transport = await connectNats({ urls: [server.url], name: "watching" });
  const heard = new Set<string>();
  await new Promise<void>((resolve) => {
    transport.subscribe("waggle.v1.default.agent.*.*.heartbeat", ({ subject }) => {
      heard.add(subject);
      if (heard.size === AGENTS) resolve();
    });
  });
  await transport.close();
}

describe.skipIf(binary === undefined)(`${AGENTS} agents`, () => {
  it("join in one moment, and reconnect after the server was killed, without one false death", async () => {
    const joinMs = await join();
    const at = (await journaled("AgentJoined")).map(({ at: joinedAt }) => joinedAt);
    const spanMs = Math.max(...at) - Math.min(...at);
    expect(at).toHaveLength(AGENTS);

    const tasks = await occupyAll(25_000);
    await server.restart();
    const backAt = performance.now();
    await sendAllHeartbeats();
    const reconnectMs = performance.now() - backAt;
    const outcomes = await Promise.all(tasks.map((task) => task.outcome()));
    console.log(
      `${AGENTS} agents joined within ${Math.round(spanMs)} ms (all knew after ${Math.round(joinMs)} ms); ` +
        `after a restart of the server all were heard again within ${Math.round(reconnectMs)} ms`,
    );
    expect(spanMs).toBeLessThan(JOIN_MS_MAX);
    expect(reconnectMs).toBeLessThan(RECONNECT_MS_MAX);
    expect(outcomes.filter(({ state, attempts }) => state === "completed" && attempts === 1)).toHaveLength(
      AGENTS,
    );
    expect(await journaled("AgentLeft")).toEqual([]);
    expect(await journaled("AgentUnresponsive")).toEqual([]);
    expect(herds.map(({ said }) => said).join("")).not.toContain("ended");
  });

  it("outlive a server that is away for longer than H: none is dead, and none has to join again", async () => {
    await join();
    await server.kill("SIGKILL");
    await sleep(limits.agentLostMs + 3_000);
    await server.restart();
    await sleep(limits.agentLostMs + 2_000);
    await sendAllHeartbeats();
    expect(await journaled("AgentLeft")).toEqual([]);
    expect(await journaled("AgentJoined")).toHaveLength(AGENTS);
    expect(herds.map(({ said }) => said).join("")).not.toContain("ended");
  });
});
