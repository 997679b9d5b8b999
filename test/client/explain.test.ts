// `swarm.explain` and `swarm.replayAssignment` against a real coordinator: one moment per answer, and coded
// refusals.

import { afterEach, beforeEach, expect, it } from "vitest";
import { describeWait } from "../../src/audit/describe-wait.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { CompactedSwarm } from "../support/compacted-swarm.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

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
