// Logs of attempts: kept by the agent within bounds, readable for the project only, also during the attempt.

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { execHandler } from "../../src/agent/exec.ts";
import { type Handler, InfrastructureError } from "../../src/agent/handler.ts";
import { LogBuffer } from "../../src/agent/log-buffer.ts";
import { LogStore } from "../../src/agent/log-store.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import { ManualClock } from "../client/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { nastyValues } from "./nasty-values.ts";

const of = { project: "p", task: "t", attempt: 1 };
const all = 1024 ** 2;

describe("the logs that an agent keeps", () => {
  it("are the end of each, cut between characters, at a line where one begins", () => {
    const pieces = fc.array(fc.string({ unit: fc.constantFrom("a", "é", "🐝", "\n"), maxLength: 4_000 }));
    fc.assert(
      fc.property(pieces, (texts) => {
        const store = new LogStore();
        store.begin("a", of);
        for (const text of texts) store.append("a", text);
        const whole = texts.join("");
        const [kept] = store.read(of, all);
        expect(whole.endsWith(kept?.text ?? "no")).toBe(true);
        const keptBytes = Buffer.byteLength(kept?.text ?? "");
        expect(keptBytes).toBeLessThanOrEqual(limits.attemptLogBytes);
        expect(keptBytes + (kept?.droppedBytes ?? 0)).toBe(Buffer.byteLength(whole));
      }),
      { numRuns: 50 },
    );
    const store = new LogStore();
    store.begin("a", of);
    for (let line = 0; line < 3_000; line += 1) store.append("a", `line ${line}\n`);
    expect(store.read(of, all)[0]?.text).toMatch(/^line \d+\n[\s\S]*line 2999\n$/);
  });

  it("are of one project and task, newest first, as many as fit", () => {
    const store = new LogStore();
    for (const attempt of [1, 2]) {
      store.begin(`a${attempt}`, { ...of, attempt });
      store.append(`a${attempt}`, `of ${attempt}`);
    }
    store.end("a1");
    expect(store.read(of, all).map(({ text }) => text)).toEqual(["of 1"]);
    expect(store.read({ project: "p", task: "t" }, all).map(({ attempt }) => attempt)).toEqual([2, 1]);
    expect(store.read({ project: "p", task: "t" }, 60)).toHaveLength(1);
    expect(store.read({ project: "other", task: "t" }, all)).toEqual([]);
    expect(store.read({ project: "p", task: "other" }, all)).toEqual([]);
  });

  it("make room, the oldest first, by count and by bytes", () => {
    const store = new LogStore();
    const end = (attempt: number, text: string) => {
      store.begin(`${attempt}`, { ...of, attempt });
      store.append(`${attempt}`, text);
      store.end(`${attempt}`);
    };
    for (let attempt = 1; attempt <= limits.endedLogsMax + 1; attempt += 1) end(attempt, "x");
    const kept = store.read({ project: "p", task: "t" }, all);
    expect([kept.length, kept.at(-1)?.attempt]).toEqual([limits.endedLogsMax, 2]);
    const large = "y".repeat(limits.attemptLogBytes);
    for (let attempt = 5_001; attempt <= 5_300; attempt += 1) end(attempt, large);
    expect(store.read({ project: "p", task: "t" }, Number.POSITIVE_INFINITY)).toHaveLength(
      limits.endedLogsBytesMax / limits.attemptLogBytes,
    );
  });
});

describe("attempts that wrote nothing", () => {
  const silent = (attempt: number) => ({ attempt, text: "", droppedBytes: 0 });

  it("are known while they run, and among the last that ended", () => {
    const store = new LogStore();
    store.begin("a1", of);
    expect(store.read({ project: "p", task: "t" }, all)).toEqual([silent(1)]);
    expect(store.end("a1")).toBe(false);
    store.begin("a2", { ...of, attempt: 2 });
    store.append("a2", "x");
    expect(store.end("a2")).toBe(true);
    expect(store.read({ project: "p", task: "t" }, all)).toEqual([{ ...silent(2), text: "x" }, silent(1)]);
    expect(store.read(of, all)).toEqual([silent(1)]);
    for (const other of [
      { project: "pt", task: "" },
      { project: "", task: "pt" },
      { project: "p", task: "T" },
      { project: "q", task: "t" },
    ])
      expect(store.read(other, all)).toEqual([]);
  });

  it("push out older ones of their sort, and no log", () => {
    const store = new LogStore();
    store.begin("written", { ...of, task: "written" });
    store.append("written", "x");
    store.end("written");
    for (let nth = 0; nth <= limits.endedLogsMax; nth += 1) {
      store.begin(`a${nth}`, { ...of, task: `t${nth}` });
      store.end(`a${nth}`);
    }
    const attemptsOf = (task: string) => store.read({ project: "p", task }, all).length;
    expect(["t0", "t1", `t${limits.endedLogsMax}`, "written"].map(attemptsOf)).toEqual([0, 1, 1, 1]);
  });
});

describe("what a handler writes", () => {
  it("is passed on at once, and in few messages where it is a flood", async () => {
    const clock = new ManualClock();
    const passed: { text: string; droppedBytes?: number }[] = [];
    const buffer = new LogBuffer(clock, (written) => passed.push(written));
    for (let line = 0; line < 100_000; line += 1) buffer.write("a", `line ${line}\n`);
    expect(passed).toHaveLength(limits.logMessagesPerFlush);
    await clock.advance(limits.logFlushMs);
    expect(passed).toHaveLength(limits.logMessagesPerFlush + 1);
    expect(passed.at(-1)?.text.endsWith("line 99999\n")).toBe(true);
    const bytes = passed.reduce((sum, { text, droppedBytes = 0 }) => sum + text.length + droppedBytes, 0);
    expect(bytes).toBe(Array.from({ length: 100_000 }, (_, line) => `line ${line}\n`).join("").length);
  });
});

describe("logs through a swarm", () => {
  let there: TestSwarm;
  let swarm: Swarm;
  beforeEach(async () => {
    there = await startTestSwarm();
    swarm = await connect({ swarm: "test", transport: there.hub.connect(), project: "red" });
  });
  afterEach(async () => {
    await swarm.close();
    await there.stop();
  });

  async function ended(handler: Handler) {
    await swarm.agent({ id: "a1", kinds: ["k"], handler });
    const task = await swarm.submit({ kind: "k", maxAttempts: 1 });
    await task.outcome();
    return task;
  }

  it("are what context.log wrote, as console.log would, whatever it is given", async () => {
    const task = await ended((_, { log }) => {
      log("read %d lines", 3, { of: 7 });
      log.write("no line end");
      log.write(Buffer.from(" é\n"));
      for (const [, make] of nastyValues) log(make(), make());
      for (const [, make] of nastyValues) log.write(make() as string);
      log("the end");
    });
    const [log] = await swarm.log(task.id);
    expect(log).toMatchObject({ attempt: 1, agent: "a1" });
    expect(log?.text.endsWith("the end\n")).toBe(true);
    const small = await swarm.submit({ kind: "k" });
    await small.outcome();
  });

  it("are stderr of a command, also while the command runs, and the error still ends with stderr", async () => {
    await swarm.agent({
      id: "a1",
      kinds: ["k"],
      handler: execHandler({ command: "echo begun >&2; read -r line; echo got $line >&2; sleep 1; exit 3" }),
    });
    const task = await swarm.submit({ kind: "k", payload: "it\n", maxAttempts: 1 });
    await expect.poll(async () => (await swarm.log(task.id))[0]?.text).toBe("begun\ngot it\n");
    await expect(task.result()).rejects.toThrow(/exit 3: begun\ngot it/);
    expect(await swarm.log(task.id)).toEqual([
      { attempt: 1, agent: "a1", text: "begun\ngot it\n", droppedBytes: 0 },
    ]);
  });

  it("name a wrong option of a hold, for an agent without a logger too", async () => {
    let calls = 0;
    const task = await ended(() => {
      calls += 1;
      const options = { retryAfter: 30 } as object;
      if (calls === 1) throw new InfrastructureError("quota", options);
    });
    const [log] = (await swarm.log(task.id)).filter(({ attempt }) => attempt === 1);
    expect(log?.text).toBe(
      "no hold is asked for: InfrastructureError: retryAfter: is unknown; did you mean retryAfterMs?\n",
    );
  });

  it("name a time of a command that cannot be read, with the accepted forms", async () => {
    const command = "[ $WAGGLE_ATTEMPT = 1 ] || exit 0; echo retry-after: 60s; exit 75";
    const task = await ended(execHandler({ command }));
    const [log] = (await swarm.log(task.id)).filter(({ attempt }) => attempt === 1);
    expect(log?.text).toContain(
      'has retry-after: "60s"; expected seconds, as with `retry-after: 30`, or an HTTP date',
    );
  });

  it("are shown to no other project", async () => {
    const task = await ended((_, { log }) => log("secret"));
    const ask = async (project: string, query: object) =>
      await there.client.ask(subjects.query(project, "log"), query);
    expect(await ask("red", { task: task.id, agent: "a1" })).toMatchObject({
      ok: true,
      logs: [{ attempt: 1, text: "secret\n" }],
    });
    expect(await ask("blue", { task: task.id, agent: "a1" })).toEqual({ ok: true, agent: "a1", logs: [] });
    for (const query of [{ task: task.id }, { task: task.id, agent: "a.b" }, { task: "" }, {}, []])
      expect(await ask("blue", query)).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE" });
    const ofSwarm = await ask("_", { task: task.id, agent: "a1" });
    expect(ofSwarm, "the only task of this id").toMatchObject({ logs: [{ attempt: 1 }] });
  });

  it("of an agent that has ended, or of an earlier process, are missing with the reason", async () => {
    const task = await ended((_, { log }) => log("gone soon"));
    const story = await swarm.story(task.id);
    await swarm.close();
    swarm = await connect({ swarm: "test", transport: there.hub.connect(), project: "red" });
    expect(await swarm.log(story)).toMatchObject([
      { attempt: 1, text: "", missing: expect.stringMatching(/^agent a1 is not there, or keeps no logs/) },
    ]);
    await swarm.agent({ id: "a1", kinds: ["k"], handler: () => undefined });
    expect(await swarm.log(story)).toMatchObject([{ missing: "agent a1 no longer holds it" }]);
  });

  it("of an agent that does not answer, or answers nonsense, are missing within two seconds", async () => {
    const task = await ended((_, { log }) => log("x"));
    const story = await swarm.story(task.id);
    await swarm.close();
    swarm = await connect({ swarm: "test", transport: there.hub.connect(), project: "red" });
    const agentWire = there.hub.connect();
    let answer: Uint8Array | undefined;
    agentWire.subscribe(subjects.agentLog("_", "a1"), ({ reply }) => {
      if (answer !== undefined && reply !== undefined) agentWire.publish(reply, answer);
    });
    const askedAt = performance.now();
    const unanswered = { missing: expect.stringContaining("agent a1 does not answer") };
    expect(await swarm.log(story)).toMatchObject([unanswered]);
    expect(performance.now() - askedAt).toBeLessThan(limits.logAskTimeoutMs + 500);
    answer = encode({ logs: "all of them" });
    expect(await swarm.log(story)).toMatchObject([unanswered]);
    await agentWire.close();
  });
});
