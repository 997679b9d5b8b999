// Agents as real processes on a real server: started twice under one id, restarted, killed by their work, and
// blocked by their work for longer than H.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import type { Event } from "../../src/state/event.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const [server] = natsServersFor("lives of agents");
const agentFile = fileURLToPath(new URL("./failing-agent.mjs", import.meta.url));

/** Maximum time until a lost agent's attempts run elsewhere. */
const ELSEWHERE_MS_MAX = 6_000;

let workplace: Workplace;
let coordinator: RunningWaggle;
let swarm: Swarm;
const programs: RunningWaggle[] = [];

beforeEach(async () => {
  workplace = await Workplace.make(server?.path);
  coordinator = workplace.start("up");
  await coordinator.says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
});
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.kill("SIGKILL")));
  await swarm.close();
  await workplace.clear();
});

async function startCommand(id: string, command: string, ...flags: string[]): Promise<RunningWaggle> {
  const agent = workplace.start("agent", "--kind", "nap", "--id", id, "--exec", command, ...flags);
  await agent.says("joined");
  return agent;
}

async function startProgram(id: string, kind: string): Promise<RunningWaggle> {
  const program = new RunningWaggle(spawn(process.execPath, [agentFile, workplace.dataFolder, id, kind]));
  programs.push(program);
  await program.says("joined");
  return program;
}

async function journaled<Type extends Event["type"]>(type: Type): Promise<Extract<Event, { type: Type }>[]> {
  const found: Extract<Event, { type: Type }>[] = [];
  for await (const { event } of swarm.events({ from: "start", follow: false }))
    if (event.type === type) found.push(event as Extract<Event, { type: Type }>);
  return found;
}

async function untilRunning(...ids: string[]): Promise<void> {
  for await (const { event } of swarm.events({ from: "start", follow: true })) {
    if (event.type !== "AssignmentsConfirmed") continue;
    const states = await Promise.all(ids.map(async (id) => (await swarm.story(id)).status.state));
    if (states.every((state) => state === "running")) return;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // no process with the id
  }
}

describe.skipIf(server === undefined)("two processes under one id", () => {
  it("leave the later process: the earlier stops its attempts, gives advice, and ends with code 5", async () => {
    const pidFile = join(workplace.folder, "pid");
    const earlier = await startCommand("a1", `echo $$ > ${pidFile}; exec sleep 300`);
    await swarm.submit({ id: "t1", kind: "nap" });
    await untilRunning("t1");
    const later = await startCommand("a1", "echo done");
    const { code, stderr } = await earlier.finished;
    expect([code, stderr]).toEqual([5, expect.stringContaining("WAGGLE_FENCED")]);
    expect(stderr).toContain("Give each process its own id");
    const pid = Number(readFileSync(pidFile, "utf8"));
    await expect.poll(() => isAlive(pid), { timeout: 5_000 }).toBe(false);

    expect(await swarm.task("t1").result()).toMatchObject({ agent: "a1", attempts: 2 });
    await coordinator.says("two processes use one agent id");
    expect(await journaled("AgentLeft")).toMatchObject([{ agent: "a1", reason: "fenced" }]);
    const { stdout } = await workplace.run("status");
    expect(stdout).toMatch(/a1 .*started twice/);
    expect(stdout).toContain("two processes use the id a1");
    expect(later.child.exitCode).toBeNull();
  });
});

describe.skipIf(server === undefined)("an agent that is killed and started again under its id", () => {
  it("has its attempts closed at the join and rerun, never more than its capacity", async () => {
    const flags = ["--max-concurrent", "2"];
    const mayEnd = join(workplace.folder, "may-end");
    const command = `while [ ! -e ${mayEnd} ]; do sleep 0.1; done; echo done`;
    const before = await startCommand("a1", command, ...flags);
    await Promise.all(["t1", "t2", "t3"].map((id) => swarm.submit({ id, kind: "nap" })));
    await untilRunning("t1", "t2");
    await before.kill("SIGKILL");
    const killedAt = performance.now();
    await startCommand("a1", command, ...flags);
    await untilRunning("t1", "t2");
    expect(performance.now() - killedAt, "without waiting for H").toBeLessThan(limits.agentLostMs / 2);
    expect((await swarm.status()).agents).toMatchObject([{ id: "a1", inFlight: 2, maxConcurrent: 2 }]);
    writeFileSync(mayEnd, "");
    const results = await Promise.all(["t1", "t2", "t3"].map((id) => swarm.task(id).result()));
    expect(results).toMatchObject([{ attempts: 2 }, { attempts: 2 }, { attempts: 1 }]);

    const open = new Set<string>();
    for await (const { event } of swarm.events({ from: "start", follow: false })) {
      if (event.type === "TaskAssigned") open.add(event.task);
      if (event.type === "AttemptFailed" || event.type === "TaskCompleted") open.delete(event.task);
      expect(open.size).toBeLessThanOrEqual(2);
    }
    const { stdout } = await workplace.run("status");
    expect(stdout).not.toContain("started twice");
    expect(coordinator.said).not.toContain("two processes use one agent id");
  });
});

describe.skipIf(server === undefined)("a task that kills agents", () => {
  it("is dead-lettered after its attempts, with no agent more lost than that, and others' tasks go on", async () => {
    const command = 'read what; if [ "$what" = poison ]; then kill -9 $(ps -o ppid= -p $PPID); fi; echo done';
    const agents = await Promise.all([
      ...[1, 2, 3, 4].map((n) => startCommand(`exec${n}`, command)),
      ...[1, 2, 3, 4].map((n) => startProgram(`program${n}`, "handle")),
    ]);
    const poisons = await Promise.all([
      swarm.submit({ id: "p1", kind: "nap", payload: "poison\n", maxAttempts: 3 }),
      swarm.submit({ id: "p2", kind: "handle", payload: "exit", maxAttempts: 2 }),
    ]);
    const outcomes = await Promise.all(poisons.map((poison) => poison.outcome()));
    expect(outcomes).toMatchObject([
      { state: "dead-lettered", attempts: 3 },
      { state: "dead-lettered", attempts: 2 },
    ]);
    const left = agents.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    expect(left).toHaveLength(3);
    const lapsed = (await journaled("AgentLeft")).map(({ agent, reason }) => `${agent} ${reason}`);
    expect(lapsed.filter((line) => /^exec\d lapsed$/.test(line))).toHaveLength(3);
    expect(lapsed.filter((line) => /^program\d lapsed$/.test(line))).toHaveLength(2);
    expect(new Set(lapsed).size).toBe(5);
    const others = await Promise.all(
      ["nap", "handle"].map((kind) => swarm.submit({ id: `after-${kind}`, kind, payload: "fine\n" })),
    );
    for (const other of others)
      expect(await other.outcome()).toMatchObject({ state: "completed", attempts: 1 });
  });
});

describe.skipIf(server === undefined)("an agent that is stopped for longer than H, and goes on", () => {
  it("has lost the running attempts, ends the handlers on waking, and joins again alone", async () => {
    const pids = join(workplace.folder, "pids");
    const command = `echo $WAGGLE_ATTEMPT $$ >> ${pids}; if [ $WAGGLE_ATTEMPT = 1 ]; then exec sleep 300; fi; echo done`;
    const stopped = await startCommand("a1", command);
    await swarm.submit({ id: "t1", kind: "nap" });
    await untilRunning("t1");
    await startCommand("a2", command);
    const stoppedAt = performance.now();
    stopped.child.kill("SIGSTOP");
    const result = await swarm.task("t1").result();
    expect(performance.now() - stoppedAt).toBeLessThan(limits.agentLostMs + ELSEWHERE_MS_MAX);
    expect(result).toMatchObject({ agent: "a2", attempts: 2 });
    stopped.child.kill("SIGCONT");
    await stopped.says("joining again as a new incarnation");
    const [, pid] = /^1 (\d+)$/m.exec(readFileSync(pids, "utf8")) ?? [];
    await expect.poll(() => isAlive(Number(pid)), { timeout: 5_000 }).toBe(false);
    await expect
      .poll(async () => (await swarm.status()).agents.map(({ id, status }) => `${id} ${status}`), {
        timeout: 10_000,
      })
      .toEqual(["a1 ready", "a2 ready"]);
    expect(await journaled("TaskCompleted")).toMatchObject([{ task: "t1", agent: "a2" }]);
    expect(await journaled("AgentLeft")).toMatchObject([{ agent: "a1", reason: "lapsed" }]);
    expect(stopped.child.exitCode).toBeNull();
  });
});

describe.skipIf(server === undefined)("an agent whose main thread is blocked for longer than H", () => {
  it("keeps its lease: the attempt is the only one, and the agent is never declared lost", async () => {
    await startProgram("blocked", "handle");
    await startProgram("free", "handle");
    const blockMs = limits.agentLostMs + 3_000;
    const task = await swarm.submit({ kind: "handle", payload: `block:${blockMs}` });
    expect(await task.outcome()).toMatchObject({ state: "completed", attempts: 1 });
    expect(await journaled("AgentLeft")).toEqual([]);
    expect(await journaled("AgentUnresponsive")).toEqual([]);
  });
});
