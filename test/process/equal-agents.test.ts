// Two equally quick agents share the work, on a real server with real processes: after one was slow once, and
// when one joins after the first has done all work. test/scheduling/lockout.test.ts tests the same in virtual
// time, up to two minutes and with varying latencies.

import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const QUICK_MS = 20;
const SLOW_MS = 4_000;
/** Ten tasks per second: at most one runs at a time, so the agent with the best score takes every task. */
const EVERY_MS = 100;
const BEFORE = 40;
const OBSERVED_MS = 26_000;
const NEXT = 300;
const [binary] = natsServersFor("equal agents");
const agentFile = fileURLToPath(new URL("./nap-agent.mjs", import.meta.url));

let server: RunningNatsServer;
let workplace: Workplace;
let swarm: Swarm;
let agents: RunningWaggle[];

beforeEach(async () => {
  server = await startNatsServer({ binary: binary?.path ?? "", jetstream: true });
  workplace = await Workplace.make();
  await workplace.start("up", "--nats", server.url).says("leading");
  swarm = await connect({ nats: server.url });
  agents = [];
});
afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.kill("SIGKILL")));
  await swarm.close();
  await workplace.clear();
  await server.stop();
});

async function startAgent(id: string): Promise<void> {
  const agent = new RunningWaggle(spawn(process.execPath, [agentFile, server.url, id]));
  agents.push(agent);
  await agent.says("joined");
}

async function agentOfNap(ms: number): Promise<string> {
  const task = await swarm.submit({ kind: "nap", payload: String(ms) });
  return (await task.result()).agent;
}

/** Runs a number of quick tasks, one after another. @returns the agent of each */
async function runInTurn(count: number): Promise<string[]> {
  const by: string[] = [];
  for (let n = 0; n < count; n += 1) by.push(await agentOfNap(QUICK_MS));
  return by;
}

/** Submits quick tasks at an even pace for `ms`. @returns the agent of each */
async function runPaced(ms: number): Promise<string[]> {
  const startedAt = performance.now();
  const by: Promise<string>[] = [];
  for (let dueMs = 0; dueMs < ms; dueMs += EVERY_MS) {
    await sleep(Math.max(0, startedAt + dueMs - performance.now()));
    by.push(agentOfNap(QUICK_MS));
  }
  return await Promise.all(by);
}

const shareOf = (id: string, by: readonly string[]) => by.filter((agent) => agent === id).length / by.length;

describe.skipIf(binary === undefined)("two equal agents", () => {
  it("share the work within 30 s of the start of one slow task, at ten tasks a second", async () => {
    await startAgent("a");
    await startAgent("b");
    await runPaced(BEFORE * EVERY_MS);
    const slow = agentOfNap(SLOW_MS);
    const meanwhile = await runPaced(SLOW_MS);
    const by = await runPaced(OBSERVED_MS);
    const share = shareOf(await slow, [...meanwhile, ...by]);
    console.log(`the agent that was slow once got ${share.toFixed(3)} of ${meanwhile.length + by.length}`);
    expect(share).toBeGreaterThanOrEqual(0.25);
  });

  it("share the next 300 sequential tasks when a second agent joins the first", async () => {
    await startAgent("veteran");
    await runInTurn(BEFORE);
    await startAgent("joiner");
    const share = shareOf("joiner", await runInTurn(NEXT));
    console.log(`the agent that joined got ${share.toFixed(3)} of ${NEXT}`);
    expect(share).toBeGreaterThanOrEqual(0.3);
  });
});
