// The query `explain` over the wire: three different reasons to wait give three different answers, a standby answers
// too, and the answer fits a message.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import {
  type ExplainedTask,
  explainResponseSchema,
  obstacleSchema,
} from "../../src/protocol/explain-schemas.ts";
import { obstacleReasons } from "../../src/scheduling/explain.ts";
import { explanationOf } from "../../src/views/task-queries.ts";
import { SwarmFixture } from "../scheduling/swarm-fixture.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { refIn } from "../support/task-refs.ts";

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
});
afterEach(() => swarm.stop());

/** As clients read answers. */
async function explained(task: string) {
  const answer = explainResponseSchema.parse(await swarm.client.explain(task));
  if (!answer.ok) throw new Error(answer.code);
  return answer;
}

const answerFor = async (task: string) => (await explained(task)).waiting?.obstacles[0];

describe("why a task waits", () => {
  it("no agent of the kind, no free agent, no budget: three answers", async () => {
    const budget = { tokens: 1_000, windowMs: 60_000, mode: "wait" };
    await swarm.client.ask(subjects.operator("project"), { project: "acme", budget });
    const agent = await swarm.agent("a1", { kinds: ["translate"], maxConcurrent: 1 });
    await swarm.client.submit([{ id: "mistyped", kind: "transalte" }]);
    await swarm.client.submit([{ id: "spends", kind: "translate", tokens: 900 }], {}, "acme");
    await swarm.client.submit([{ id: "waits", kind: "translate", tokens: 1 }]);
    await swarm.client.submit([{ id: "dear", kind: "translate", tokens: 200 }], {}, "acme");
    expect(await answerFor("mistyped")).toEqual({
      reason: "no-agent-serves-kind",
      kind: "transalte",
      nearMisses: ["translate"],
      offline: 0,
      draining: 0,
    });
    expect(await answerFor("waits")).toEqual({ reason: "all-full", agents: 1, taken: 1, capacity: 1 });
    await agent.report(await agent.assignment(), "completed", { result: "", tokens: 900 });
    await agent.report(await agent.assignment(), "completed", { result: "", tokens: 1 });
    expect(await answerFor("dear")).toMatchObject({
      reason: "project-budget",
      project: "acme",
      spent: 900,
      reserved: 0,
      needed: 200,
    });
  });

  it("is said of a moment: time passes in the answer without a batch", async () => {
    await swarm.client.submit([{ id: "t1", kind: "k" }]);
    const before = await explained("t1");
    await clock.advance(1_234);
    const after = await explained("t1");
    expect(after.waiting?.ageMs).toBe((before.waiting?.ageMs ?? 0) + 1_234);
    expect(after.at - before.at).toBe(1_234);
  });

  it("is not said of a task that has an agent, or has ended", async () => {
    const agent = await swarm.agent("a1");
    await swarm.client.submit([{ id: "t1", kind: "count", role: undefined }]);
    expect(await explained("t1")).toMatchObject({ state: "assigned", agent: "a1" });
    expect(await explained("t1")).not.toHaveProperty("waiting");
    await agent.complete(await agent.assignment());
    expect(await explained("t1")).toMatchObject({ state: "completed", attempts: 1 });
    expect(await explained("t1")).not.toHaveProperty("waiting");
  });

  it("is refused of an unknown task, and of a question that is none", async () => {
    expect(await swarm.client.explain("nope")).toMatchObject({
      ok: false,
      code: "WAGGLE_UNKNOWN_TASK",
      field: "task",
    });
    expect(await swarm.client.ask(subjects.query("_", "explain"), {})).toMatchObject({
      ok: false,
      code: "WAGGLE_INVALID_MESSAGE",
      field: "task",
    });
  });

  it("is answered by leader and standby alike", async () => {
    await swarm.client.submit([{ id: "t1", kind: "k" }]);
    await swarm.startAnother("c2");
    await clock.advance(limits.journalPollMs);
    const answers = swarm.client.listen<{ stale?: true; at: number }>("_INBOX.all");
    const question = Buffer.from('{"task":"t1"}');
    swarm.client.transport.publish(subjects.query("_", "explain"), question, "_INBOX.all");
    await clock.advance(limits.standbyAnswerMs);
    const [first, second] = answers.all;
    expect(first).toMatchObject({ waiting: { obstacles: [{ reason: "no-agent-serves-kind" }] } });
    expect(first).not.toHaveProperty("stale");
    expect(second).toMatchObject({
      stale: true,
      waiting: { obstacles: [{ reason: "no-agent-serves-kind" }] },
    });
  });

  it("a journal with too little room is the first answer, by leader and standby, until it has more", async () => {
    await swarm.stop();
    const bytesMax = 1_000_000;
    const usage = { bytes: 0, bytesMax, remedy: "buy a disk" };
    const journalOf = (store: MemoryJournalStore) =>
      Object.assign(new MemoryJournal(store), { usage: async () => ({ ...usage }) });
    const store = new MemoryJournalStore();
    swarm = await startTestSwarm({ clock, store, journal: journalOf(store) });
    swarm.watched.mayHoldBack = true;
    await swarm.client.submit([{ id: "t1", kind: "k" }]);
    await swarm.startAnother("c2", journalOf(store));
    usage.bytes = bytesMax * limits.journalUnassignedShare + 1;
    await clock.advance(limits.journalUsageMs + limits.pulseMs);
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    const tight = { reason: "journal-tight", bytesMax, remedy: "buy a disk" };
    expect((await explained("t1")).waiting?.obstacles).toEqual([{ ...tight, bytes: expect.any(Number) }]);

    const answers = swarm.client.listen<{ stale?: true }>("_INBOX.all");
    const question = Buffer.from('{"task":"t1"}');
    swarm.client.transport.publish(subjects.query("_", "explain"), question, "_INBOX.all");
    await clock.advance(limits.standbyAnswerMs);
    expect(answers.all).toHaveLength(2);
    expect(answers.all[1]).toMatchObject({
      stale: true,
      waiting: { obstacles: [{ ...tight, bytes: usage.bytes }] },
    });

    usage.bytes = 0;
    for (let passed = 0; passed < limits.journalUsageMs; passed += limits.heartbeatMs) {
      await agent.heartbeat([], 0);
      await clock.advance(limits.heartbeatMs);
    }
    expect(await explained("t1")).toMatchObject({ state: "assigned" });
  });

  it("a question about a project names no task of another project", async () => {
    const ask = async (project: string, task: string) =>
      explainResponseSchema.parse(
        await swarm.client.ask(subjects.query(project, "explain"), { task }),
      ) as ExplainedTask;
    const secret = { id: "secret", user: "bob", kind: "count", role: undefined };
    await swarm.client.submit([secret], {}, "blue");
    await swarm.client.submit([{ id: "red1", kind: "count" }], {}, "red");
    const next = { task: "secret", project: "blue", user: "bob" };
    expect((await ask("_", "red1")).waiting?.position?.next).toEqual(next);
    expect((await ask("blue", "secret")).waiting?.position?.next).toEqual(next);
    const confined = await ask("red", "red1");
    expect(confined.waiting?.position).toMatchObject({ waiting: 2, project: { of: 2 } });
    expect(JSON.stringify(confined)).not.toMatch(/secret|blue|bob/);
  });

  it("a question about a project names no task of another project that a budget is kept for", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 9 });
    const budget = { tokens: 1_000, windowMs: 60_000, mode: "wait" };
    await swarm.client.ask(subjects.operator("policy"), { starvationLimit: 1, budget });
    const run = async (id: string, project: string, tokens: number) => {
      await swarm.client.submit([{ id, kind: "count", tokens }], {}, project);
      await agent.report(await agent.assignment(), "completed", { result: "", tokens });
    };
    await run("spent", "blue", 600);
    await swarm.client.submit([{ id: "secret", user: "bob", kind: "count", tokens: 900 }], {}, "blue");
    for (const id of ["first", "second"]) await run(id, "red", 1);
    await swarm.client.submit([{ id: "small", kind: "count", tokens: 1 }], {}, "red");
    const ask = async (project: string) => {
      const answer = await swarm.client.ask(subjects.query(project, "explain"), { task: "small" });
      return explainResponseSchema.parse(answer) as ExplainedTask;
    };
    const kept = { reason: "room-kept", task: "secret", project: "blue", user: "bob" };
    expect((await ask("_")).waiting?.obstacles).toEqual([kept]);
    const confined = await ask("red");
    expect(confined.waiting?.obstacles).toEqual([{ reason: "room-kept" }]);
    expect(JSON.stringify(confined)).not.toMatch(/secret|blue|bob/);
  });

  it("names as many agents as fit, agents of the kind first, and counts the others", () => {
    const { state, at } = aCrowd(500);
    const answer = explanationOf(state, refIn(state, "t1"), {
      now: at,
      isStale: false,
      bytesMax: 64 * 1024,
    });
    const { waiting, omitted } = answer as Extract<typeof answer, { ok: true }>;
    expect(waiting?.agents[0]).toMatchObject({ agent: "serves", standing: "wrong-role" });
    expect(omitted?.agents).toBeGreaterThan(0);
    expect((waiting?.agents.length ?? 0) + (omitted?.agents ?? 0)).toBe(501);
    expect(encode(answer).length).toBeLessThan(64 * 1024);
  });
});

function aCrowd(count: number): SwarmFixture {
  const crowd = new SwarmFixture();
  for (let n = 0; n < count; n += 1) crowd.join(`${n}-${"x".repeat(50)}`, { kinds: ["l"] });
  crowd.join("serves", { role: "other" });
  crowd.submit("t1", { role: "mine" });
  return crowd;
}

it("has a shape on the wire for each reason", () => {
  const shapes = obstacleSchema.options.map(({ shape }) => shape.reason.value);
  expect(shapes.toSorted()).toEqual([...obstacleReasons].sort());
});
