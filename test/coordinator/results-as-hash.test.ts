// A project that journals results as hash: what the journal holds, who is told the result, and what is answered later,
// also by the next leader.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { DonePush } from "../../src/protocol/schemas.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { digestOf } from "../../src/result-digest.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { storedBatches, storedEvents } from "../support/stored.ts";
import {
  type Listening,
  noJitter,
  roleOf,
  startTestSwarm,
  stopped,
  subjects,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";

const secret = "the secret of Zürich";
const resultDigest = digestOf({ result: secret });

let clock: ManualClock;
let store: MemoryJournalStore;
let held: HeldJournal;
let swarm: TestSwarm;
let agent: WireAgent;
let pushes: Listening<DonePush>;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  held = new HeldJournal(store);
  swarm = await startTestSwarm({ clock, store, journal: held.journal, random: noJitter });
  agent = await swarm.agent("a1");
  pushes = swarm.client.listen<DonePush>(doneSubject("_INBOX.me"));
  await keep("hash");
});
afterEach(async () => {
  held.release();
  held.journal.setOffline(false);
  await stopped(swarm, clock);
});

const keep = (results: "hash" | "whole") =>
  swarm.client.ask(subjects.operator("project"), { project: "default", results });

/** The submitter is told the outcome at `_INBOX.me`. */
async function assigned(task: string) {
  await swarm.client.submit([{ id: task, kind: "count" }], { notify: "_INBOX.me" });
  return await agent.assignment();
}

const awaited = (task: string) =>
  swarm.client.ask(subjects.project("default", "await"), { tasks: [task], notify: "_INBOX.other" });

const journalText = () => JSON.stringify(storedBatches(store));

describe("the journal", () => {
  it("holds hash and length of the result, and the submitter is told the result", async () => {
    await agent.complete(await assigned("t1"), secret);
    const [push] = pushes.all;
    expect(push?.ended).toMatchObject([{ task: "t1", state: "completed", result: secret, resultDigest }]);
    const [completed] = storedEvents(store, "TaskCompleted");
    expect(completed).toMatchObject({ task: "t1", resultDigest });
    expect(completed).not.toHaveProperty("result");
    expect(journalText()).not.toContain("secret");
    expect(resultDigest.bytes).toBe(Buffer.byteLength(secret));
  });

  it("counts the bytes behind base64, and says how the result was written", async () => {
    const result = Buffer.from([0, 255, 7]).toString("base64");
    await agent.report(await assigned("t1"), "completed", { result, encoding: "base64" });
    const [completed] = storedEvents(store, "TaskCompleted");
    expect(completed).toMatchObject({ encoding: "base64", resultDigest: { bytes: 3 } });
    expect(pushes.all[0]?.ended).toMatchObject([{ result, encoding: "base64" }]);
  });

  it("holds results again once the project says so; results of before stay as they are", async () => {
    await agent.complete(await assigned("t1"), secret);
    await keep("whole");
    await agent.complete(await assigned("t2"), "public");
    const [first, second] = storedEvents(store, "TaskCompleted");
    expect(first).not.toHaveProperty("result");
    expect(second).toMatchObject({ result: "public" });
    expect(second).not.toHaveProperty("resultDigest");
  });

  it("follows the setting of the moment in which the result is decided", async () => {
    await keep("whole");
    const assignment = await assigned("t1");
    const set = keep("hash");
    const completed = agent.complete(assignment, secret); // before the setting is committed
    await Promise.all([set, completed]);
    expect(journalText()).not.toContain("secret");
  });

  it("leaves a live event without the result, as always", async () => {
    const events = swarm.client.listen<{ events: readonly object[] }>(
      subjects.event("default", "task", "completed"),
    );
    await agent.complete(await assigned("t1"), secret);
    expect(events.all.flatMap((message) => message.events)).toMatchObject([{ task: "t1", resultDigest }]);
    expect(JSON.stringify(events.all)).not.toContain("secret");
  });
});

describe("a client that asks after the end", () => {
  it("is told the hash and the length", async () => {
    await agent.complete(await assigned("t1"), secret);
    const { answers } = await awaited("t1");
    expect(answers).toMatchObject([{ ok: true, outcome: { state: "completed", resultDigest } }]);
    expect(answers[0].outcome).not.toHaveProperty("result");
    expect(answers[0].outcome).not.toHaveProperty("gone");
  });

  it("with the same submission finds the ended task", async () => {
    await agent.complete(await assigned("t1"), secret);
    const { answers } = await swarm.client.submit([{ id: "t1", kind: "count" }], { notify: "_INBOX.me" });
    expect(answers).toMatchObject([{ ok: true, task: "t1", duplicate: true }]);
    expect((await awaited("t1")).answers[0].outcome).toMatchObject({ resultDigest });
  });
});

describe("a repeated report", () => {
  it("is answered ok, and changes nothing", async () => {
    const assignment = await assigned("t1");
    await agent.complete(assignment, secret);
    const { answers } = await agent.complete(assignment, secret);
    expect(answers).toEqual([{ ok: true, status: "ok" }]);
    expect(storedEvents(store, "TaskCompleted")).toHaveLength(1);
    expect(pushes.all).toHaveLength(1);
  });
});

describe("a leader that is cut off between the append and the notification", () => {
  it("takes the result with it: the next leader has the hash, and answers the agent's repeat ok", async () => {
    const standby = await swarm.startAnother("c2", new MemoryJournal(store));
    await clock.settle();
    const assignment = await assigned("t1");
    held.hold();
    const reported = agent.complete(assignment, secret).catch(() => undefined);
    await clock.settle();
    expect(storedEvents(store, "TaskCompleted")).toHaveLength(1); // stored, and the leader does not know
    held.journal.setOffline(true);
    await swarm.transportById.get("c1")?.close();
    await clock.advance(4 * limits.leaderTimeoutMs);
    await reported;
    expect(roleOf(standby)).toBe("leading");

    expect(pushes.all).toEqual([]);
    const { answers } = await awaited("t1");
    expect(answers).toMatchObject([{ ok: true, outcome: { state: "completed", resultDigest } }]);
    expect(answers[0].outcome).not.toHaveProperty("result");
    expect((await agent.complete(assignment, secret)).answers).toEqual([{ ok: true, status: "ok" }]);
    expect(storedEvents(store, "TaskCompleted")).toHaveLength(1);
    expect(journalText()).not.toContain("secret");
  });
});
