// `swarm.explain` and `swarm.replayAssignment` against a real coordinator: one moment per answer, and coded
// refusals.

import { afterEach, beforeEach, expect, it } from "vitest";
import { describeWait } from "../../src/audit/describe-wait.ts";
import { connect } from "../../src/client/connect.ts";
import { type Swarm, SwarmClient } from "../../src/client/swarm.ts";
import type { OpenJournal } from "../../src/client/task-stories.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { UnreachableError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { CompactedSwarm, everything } from "../support/compacted-swarm.ts";
import { silentLogger, startTestSwarm, type TestSwarm } from "../support/swarm.ts";

let there: TestSwarm;
let swarm: Swarm;

beforeEach(async () => {
  there = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: there.hub.connect() });
});
afterEach(async () => {
  await swarm.close();
  await there.stop();
});

it("says why a task waits, and keeps the receipts of the attempts it had", async () => {
  const agent = await there.agent("a1");
  await swarm.submit({ id: "t1", kind: "count" });
  await agent.report(await agent.assignment(), "failed", { error: "no" });
  const explained = await swarm.explain("t1");
  expect(explained).toMatchObject({
    task: "t1",
    state: "delayed",
    waiting: { obstacles: [{ reason: "not-before", isRetry: true }] },
    attempts: [{ attempt: 1, agent: "a1", ended: "failed", receipt: { feasible: 1, decidedBy: "only" } }],
  });
  expect(explained.waiting && describeWait(explained.waiting, () => "noon")).toBe(
    "An attempt failed: the next attempt starts no earlier than noon",
  );
});

it("of a task that ended has the attempts and how it ended", async () => {
  const agent = await there.agent("a1");
  await swarm.submit({ id: "t1", kind: "count", maxAttempts: 1 });
  await agent.report(await agent.assignment(), "failed", { error: "no" });
  const explained = await swarm.explain("t1");
  expect(explained).toMatchObject({ state: "dead-lettered", deadLetterReason: "attempts-exhausted" });
  expect(explained).not.toHaveProperty("waiting");
  expect(explained.attempts).toHaveLength(1);
});

it("replays one assignment, the last by default, and reports progress", async () => {
  const agent = await there.agent("a1");
  await there.agent("other", { kinds: ["other"] });
  await swarm.submit({ id: "t1", kind: "count" });
  await agent.complete(await agent.assignment());
  const progress: number[] = [];
  const replayed = await swarm.replayAssignment("t1", { onProgress: ({ idx }) => progress.push(idx) });
  expect(replayed).toMatchObject({
    attempt: 1,
    agent: "a1",
    kind: "count",
    agrees: true,
    agents: [
      { agent: "a1", standing: "feasible", free: 4, capacity: 4 },
      { agent: "other", standing: "wrong-kind" },
    ],
  });
  expect(progress).toEqual(Array.from({ length: replayed.idx }, (_, at) => at + 1));
  expect(replayed.replayed).toEqual({ from: 1, to: replayed.idx });
});

/** A program that reads the journal itself. */
function reading({ swarm: { hub } }: CompactedSwarm, openJournal: OpenJournal): Swarm {
  return new SwarmClient({
    ...{ transport: hub.connect(), swarm: swarmId("test"), project: "default", user: undefined, openJournal },
    ...{ clock: systemClock, random: systemRandom, logger: silentLogger, onClose: async () => undefined },
  });
}

it("replays from the newest base before the assignment where the program reads the journal itself", async () => {
  const compacted = await new CompactedSwarm().start(everything);
  let closed = 0;
  const own = reading(compacted, async () => {
    const journal = new MemoryJournal(compacted.store);
    return {
      list: () => journal.list(),
      segment: (number) => journal.segment(number),
      close: async () => {
        closed += 1;
      },
    };
  });
  const refused = reading(compacted, async () => {
    throw new UnreachableError("the server permits this user no streams");
  });
  try {
    const agent = await compacted.swarm.agent("a1");
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    await own.submit({ id: "late", kind: "count" });
    await agent.assignment();
    const progress: number[] = [];
    const replayed = await own.replayAssignment("late", { onProgress: ({ idx }) => progress.push(idx) });
    expect(replayed).toMatchObject({ task: "late", attempt: 1, agent: "a1", agrees: true });
    const { from, to } = replayed.replayed;
    expect(from).toBeGreaterThan(30);
    expect(to).toBe(replayed.idx);
    expect(progress).toEqual(Array.from({ length: to - from + 1 }, (_, at) => from + at));
    expect(closed).toBe(1);

    const fromPages = await refused.replayAssignment("late");
    expect(fromPages).toEqual({ ...replayed, replayed: { from: 1, to } });
  } finally {
    await Promise.all([own.close(), refused.close()]);
    await compacted.swarm.stop();
  }
});

it("replays an assignment although the beginning of the journal was removed", async () => {
  const compacted = await new CompactedSwarm().start();
  const own = reading(compacted, async () => new MemoryJournal(compacted.store));
  try {
    const agent = await compacted.swarm.agent("a1");
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    await own.submit({ id: "late", kind: "count" });
    await agent.assignment();
    expect((await own.status()).journal.auditFirstIdx).toBeGreaterThan(20);
    expect(await own.replayAssignment("late")).toMatchObject({ agent: "a1", agrees: true });
  } finally {
    await own.close();
    await compacted.swarm.stop();
  }
});

it("says that a purged journal cannot be replayed, and what is left", async () => {
  const compacted = await new CompactedSwarm().start();
  const client = await connect({ swarm: "test", transport: compacted.swarm.hub.connect() });
  try {
    const agent = await compacted.swarm.agent("a1");
    await client.submit({ id: "early", kind: "count" });
    await agent.complete(await agent.assignment());
    await client.submit({ id: "open", kind: "count" });
    await agent.assignment();
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const { auditFirstIdx } = (await client.status()).journal;
    expect(auditFirstIdx).toBeGreaterThan(20);
    const from = `begins at batch ${auditFirstIdx}`;
    const refused = { code: "WAGGLE_AUDIT_TRIMMED", firstIdx: auditFirstIdx };
    await expect(client.replayAssignment("open")).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(`${from}: only its receipt may be left`),
    });
    await expect(client.replayAssignment("early")).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(`${from}: the task's record is no longer kept`),
    });
    expect(await client.explain("early")).toMatchObject({
      state: "completed",
      attemptCount: 1,
      attempts: [],
      endedIdx: expect.any(Number),
    });
  } finally {
    await client.close();
    await compacted.swarm.stop();
  }
});

it("says that a task without an assignment has nothing to replay", async () => {
  await swarm.submit({ id: "t1", kind: "nobody" });
  await swarm.cancel("t1");
  await expect(swarm.replayAssignment("t1", { attempt: 1 })).rejects.toThrow(/ended without an attempt/);
  expect(await swarm.explain("t1")).toMatchObject({
    state: "cancelled",
    attempts: [],
    endedAt: expect.anything(),
  });
});

it("refuses unknown tasks and attempts, and names them", async () => {
  await swarm.submit({ id: "t1", kind: "nobody" });
  await expect(swarm.explain("nope")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
  await expect(swarm.replayAssignment("nope")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
  for (const attempt of [undefined, 0, 1, 1.5])
    await expect(
      swarm.replayAssignment("t1", attempt === undefined ? {} : { attempt }),
    ).rejects.toMatchObject({ code: "WAGGLE_INVALID_VALUE", field: "attempt" });
});
