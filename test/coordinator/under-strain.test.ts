// A leader whose journal is slow, away, or taken over: answers, memory and bounds meanwhile.

import { afterEach, beforeEach, expect, it } from "vitest";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { storedBatches } from "../support/stored.ts";
import { noJitter, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";

let clock: ManualClock;
let store: MemoryJournalStore;
let held: HeldJournal;
let swarm: TestSwarm;
/** Answers to requests without a caller that waits. */
let answers: string[];

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  held = new HeldJournal(store);
  swarm = await startTestSwarm({
    clock,
    store,
    journal: held.journal,
    random: noJitter,
  });
  answers = [];
  swarm.client.transport.subscribe("_INBOX.sink", ({ data }) => answers.push(Buffer.from(data).toString()));
});

afterEach(async () => {
  held.release();
  await stopped(swarm, clock);
});

/** Asks so many questions at once. */
async function ask(count: number): Promise<void> {
  const question = encode({ agent: "nobody" });
  for (let n = 0; n < count; n += 1)
    swarm.client.transport.publish(subjects.operator("drain"), question, "_INBOX.sink");
  await clock.settle();
}

function submitLater(id: string): void {
  swarm.submit(id).catch(() => undefined); // the answer is held, or never comes
}

/** The maximum of batches is in flight, and no turn runs until a batch is committed. */
async function fillInFlight(): Promise<void> {
  for (let batch = 0; batch < limits.batchesInFlightMax; batch += 1) {
    submitLater(`in-flight-${batch}`);
    await clock.settle();
  }
}

const eventsIn = () => storedBatches(store).flat();

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await clock.settle();
  return settled;
}

it("queries behind a batch in flight are bounded like earlier requests", async () => {
  held.hold();
  submitLater("t1");
  await clock.settle();
  await ask(limits.inboxDepthMax + 100);
  expect(answers.length).toBeGreaterThanOrEqual(100);
  expect(answers.every((answer) => answer.includes("WAGGLE_BACKPRESSURE"))).toBe(true);
});

it("a leader cut off from the journal refuses no request: a successor may have accepted the request", async () => {
  const second = await swarm.startAnother("c2", new MemoryJournal(store));
  held.journal.setOffline(true);
  await clock.advance(2 * limits.leaderTimeoutMs);
  expect(await second.whenLeading()).toBe(2);
  for (const id of ["a", "b", "c"]) {
    submitLater(id);
    await clock.settle();
  }
  // In parts at the successor's pace; the cut-off leader collects all.
  for (let asked = 0; asked < limits.inboxDepthMax + 500; asked += 5_000) await ask(5_000);
  const refusals = answers.filter((answer) => answer.includes("WAGGLE_BACKPRESSURE"));
  expect(refusals).toEqual([]);
  held.journal.setOffline(false);
});

it("refusals for want of room are on record, even when the record found no room", async () => {
  held.hold();
  for (const id of ["a", "b", "c"]) {
    submitLater(id);
    await clock.settle();
  }
  await ask(limits.inboxDepthMax - 3);
  for (let n = 0; n < 10; n += 1)
    expect(await swarm.client.submit([{ kind: "count" }])).toMatchObject({ ok: false });
  await clock.advance(2 * limits.refusalSummaryMs);
  held.release();
  await clock.advance(2 * limits.refusalSummaryMs);
  const refused = eventsIn().flatMap((event) => (event.type === "TasksRefused" ? [event.count] : []));
  expect(refused.reduce((sum, count) => sum + count, 0)).toBe(10);
});

it("no message follows a term's end, for any request or timer", async () => {
  await swarm.agent("a1");
  await swarm.client.submit([{ id: "t1", kind: "count", notBefore: clock.now() + 500 }]);
  held.hold();
  const stopped = swarm.coordinator.stop();
  await clock.settle();
  await clock.advance(600);
  swarm.client.status().catch(() => undefined); // no leader any more: no answer is due
  await clock.settle();
  held.release();
  await clock.settle();
  await stopped;
  expect(swarm.watched.settled().closing).toMatchObject({ reason: "handing-over" });
  expect(store.end(1)).toMatchObject({ position: swarm.watched.replay.place?.position, isSealed: true });
  const second = await swarm.startAnother("c2", new MemoryJournal(store));
  expect(await second.whenLeading()).toBe(2);
});

it("a stop ends though the journal is away", async () => {
  held.journal.setOffline(true);
  const stopped = swarm.coordinator.stop();
  await clock.advance(limits.handOverMs - 100);
  expect(await isSettled(stopped)).toBe(false);
  await clock.advance(200);
  expect(await isSettled(stopped)).toBe(true);
});

it("a slow journal makes no prompt agent unresponsive, and sends nothing twice", async () => {
  const agent = await swarm.agent("a1");
  held.hold();
  submitLater("t1");
  await clock.settle();
  for (let heartbeat = 0; heartbeat < 4; heartbeat += 1) {
    agent.heartbeat([], 0).catch(() => undefined); // renewed once the journal answers, if at all
    await clock.advance(limits.heartbeatMs);
  }
  held.release();
  await clock.advance(limits.heartbeatMs / 10);
  expect(eventsIn().map(({ type }) => type)).not.toContain("AgentUnresponsive");
  expect(agent.pushes.all.filter(({ type }) => type === "assign")).toHaveLength(1);
});

it("an agent silent for H is not lost if it is heard again before the journal lets that be decided", async () => {
  const agent = await swarm.agent("a1");
  await clock.advance(2 * limits.unresponsiveSilenceMs);
  held.hold();
  await fillInFlight();
  await clock.advance(limits.agentLostMs);
  agent.heartbeat([], 0).catch(() => undefined);
  await clock.settle();
  held.release();
  await clock.advance(limits.heartbeatMs);
  expect(eventsIn().map(({ type }) => type)).not.toContain("AgentLeft");
});

it("a still silent agent is lost, once the journal accepts the decision", async () => {
  await swarm.agent("a1");
  await clock.advance(limits.heartbeatMs);
  held.hold();
  await fillInFlight();
  await clock.advance(2 * limits.agentLostMs);
  expect(eventsIn().map(({ type }) => type)).not.toContain("AgentLeft");
  held.release();
  await clock.advance(limits.heartbeatMs);
  expect(eventsIn()).toContainEqual(expect.objectContaining({ type: "AgentLeft", reason: "lapsed" }));
});

it("an assignment of the batch that starts a term is sent once", async () => {
  const agent = await swarm.agent("a1");
  await swarm.client.submit([{ id: "t1", kind: "count", notBefore: clock.now() + limits.leaderTimeoutMs }]);
  const second: Coordinator = await swarm.startAnother("c2", new MemoryJournal(store));
  held.journal.setOffline(true);
  await clock.advance(2 * limits.leaderTimeoutMs);
  await second.whenLeading();
  expect(agent.pushes.all.filter(({ type }) => type === "assign")).toHaveLength(1);
  held.journal.setOffline(false);
});
