// The agent in Python, on plain sockets, against the production coordinator over a real connection:
// docs/protocol.md is enough to join from any language.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { startTestBroker, type TestBroker } from "../support/development-broker.ts";
import { hasProgram } from "../support/programs.ts";
import { silentLogger, subjects, WireNode } from "../support/swarm.ts";

const script = fileURLToPath(new URL("../../examples/python-agent/agent.py", import.meta.url));

let broker: TestBroker;
let coordinator: Coordinator;
let client: WireNode;
let agent: ChildProcess;

describe.runIf(hasProgram("python3", "the agent in Python"))("the agent in Python", () => {
  beforeAll(async () => {
    broker = await startTestBroker();
    const { transport } = broker;
    const journal = new MemoryJournal(new MemoryJournalStore());
    const parts = { transport, journal, clock: systemClock, random: systemRandom, logger: silentLogger };
    coordinator = await startCoordinator({ id: "c1", swarm: swarmId("test"), ...parts });
    await coordinator.whenLeading();
    client = new WireNode(transport);
    const flags = ["--kind", "shout", "--swarm", "test", "--id", "py", "--nats", broker.url];
    agent = spawn("python3", [script, ...flags], { stdio: ["ignore", "ignore", "pipe"] });
    await said("py joined");
  });

  afterAll(async () => {
    agent?.kill("SIGKILL");
    await coordinator?.stop();
    await broker?.close();
  });

  it("is at most 120 lines", () => {
    expect(readFileSync(script, "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(120);
  });

  it("does tasks", async () => {
    const done = client.listen<{ ended: { task: string; state: string; result?: string }[] }>(
      doneSubject("_INBOX.inbox1"),
    );
    const tasks = Array.from({ length: 20 }, (_, n) => ({ id: `t${n}`, kind: "shout", payload: `hey ${n}` }));
    await client.submit(tasks, { notify: "_INBOX.inbox1" });
    const ended = new Map<string, string | undefined>();
    while (ended.size < tasks.length)
      for (const { task, result } of (await done.next()).ended) ended.set(task, result);
    expect(ended.get("t7")).toBe("HEY 7");
  });

  it("is seen alive by a heartbeat, which confirms assignments", async () => {
    const { agents } = await client.status();
    expect(agents).toMatchObject([{ id: "py", status: "ready", kinds: [{ kind: "shout", attempts: 20 }] }]);
  });

  it("drains and leaves when it is told to end", async () => {
    const left = client.listen<{ events: object[] }>(subjects.event("_", "agent", "left"));
    await broker.transport.flush();
    agent.kill("SIGTERM");
    expect((await left.next()).events).toEqual([
      expect.objectContaining({ type: "AgentLeft", agent: "py", reason: "left" }),
    ]);
    const [code] = agent.exitCode === null ? await once(agent, "exit") : [agent.exitCode];
    expect(code).toBe(0);
  });

  async function said(text: string): Promise<void> {
    let heard = "";
    await new Promise<void>((resolve, reject) => {
      agent.stderr?.on("data", (chunk: Buffer) => {
        heard += chunk.toString();
        if (heard.includes(text)) resolve();
      });
      agent.once("exit", () => reject(new Error(`the agent ended without saying "${text}": ${heard}`)));
    });
  }
});
