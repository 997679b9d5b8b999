// A full journal without hope of more room: records behind a base are removed first, and the journal states so.

import { afterEach, describe, expect, it } from "vitest";
import { findLive } from "../../src/journal/live.ts";
import { restore } from "../../src/journal/log.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { limits } from "../../src/limits.ts";
import { CompactedSwarm, everything } from "../support/compacted-swarm.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { insertRecord, storedEvents } from "../support/stored.ts";
import { roleOf, stopped } from "../support/swarm.ts";

const bytesMax = 100_000;
let compacted: CompactedSwarm;
afterEach(async () => {
  compacted.store.bytesMax = undefined;
  await stopped(compacted.swarm, compacted.clock);
});

/** A swarm with so many tasks of 5 kB in the journal. */
async function loaded(tasks: number, everyEvents: number): Promise<void> {
  compacted = new CompactedSwarm(bytesMax);
  compacted.everyEvents = everyEvents;
  await compacted.start(everything);
  const agent = await compacted.swarm.agent("a1", { kinds: ["k"] });
  for (let task = 0; task < tasks; task += 1) {
    await compacted.work(1, "x".repeat(5_000));
    await agent.complete(await agent.assignment());
    await agent.heartbeat([], task + 1);
  }
}

/** A task too large for the free room, while the journal is not short of room. */
const submitLarge = (bytes = 50_000) =>
  compacted.swarm.client.submit([{ id: "large", kind: "none", payload: "x".repeat(bytes) }]);

/** Time passes, with a reader of the journal. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += limits.pulseMs) {
    await compacted.clock.advance(limits.pulseMs);
    compacted.swarm.watched.settled();
  }
}

async function expectRestart(): Promise<void> {
  const journal = new MemoryJournal(compacted.store);
  const { live } = await findLive(journal);
  const { state } = await restore(live ?? expect.fail("a segment is live"), {
    journal,
    clock: compacted.clock,
  });
  expect(fingerprint(state)).toBe(fingerprint(compacted.swarm.watched.settled().state));
}

describe("a full journal", () => {
  it.each([
    ["has a base", 4],
    ["has no base yet", 1_000_000],
  ])("that %s is cut to one segment, takes the waiting batches, and logs the cut", async (_, everyEvents) => {
    await loaded(5, everyEvents);
    const answer = submitLarge();
    answer.catch(() => undefined); // awaited below
    await pass(limits.journalFullRetryMs * 2 + limits.journalRoomRetryMs * 4);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    const trimmed = storedEvents(compacted.store, "AuditTrimmed");
    expect(trimmed.at(-1)).toMatchObject({ reason: "storage-short" });
    expect(compacted.swarm.watched.settled().state.auditFirstIdx).toBeGreaterThan(1);
    await expectRestart();
  });

  it("tells clients why nothing is answered, and nothing definite", async () => {
    await loaded(4, 1_000_000);
    compacted.store.bytesMax = compacted.store.usage.bytes;
    submitLarge().catch(() => undefined); // never answered
    await compacted.clock.settle();
    const { client } = compacted.swarm;
    const answers = Promise.all([
      client.status(),
      client.submit([{ id: "later", kind: "k" }]),
      client.ask("waggle.v1.test.operator.transfer", { of: 1 }),
    ]);
    await compacted.clock.advance(limits.standbyAnswerMs * 2);
    for (const answer of await answers)
      expect(answer).toMatchObject({
        ok: false,
        code: "WAGGLE_UNREACHABLE",
        message: expect.stringContaining("the journal is full"),
      });
  });

  it("without a leader is led as soon as there is room, with all that was committed", async () => {
    await loaded(4, 1_000_000);
    const standby = await compacted.swarm.startAnother("c2");
    await compacted.clock.settle();
    compacted.store.bytesMax = compacted.store.usage.bytes;
    compacted.swarm.hub.cut(compacted.swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    await stopped(compacted.swarm.coordinator, compacted.clock);
    await pass(4 * limits.leaderTimeoutMs);
    expect(roleOf(standby)).toBe("standing-by");
    compacted.store.bytesMax = bytesMax;
    await pass(3 * limits.leaderTimeoutMs);
    expect(roleOf(standby)).toBe("leading");
    expect(compacted.swarm.watched.settled().state.counts.completed).toBe(4);
    await expectRestart();
  });
});

describe("a journal with little room left", () => {
  it("is kept for the results of running tasks: nothing more is assigned until there is room", async () => {
    compacted = new CompactedSwarm(bytesMax);
    await compacted.start(everything);
    const { swarm, store } = compacted;
    await compacted.work(2, "x".repeat(5_000));
    swarm.watched.mayHoldBack = true;
    insertRecord(store, Buffer.alloc(bytesMax * limits.journalUnassignedShare - store.usage.bytes));
    await pass(limits.journalUsageMs + limits.pulseMs);
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    await compacted.clock.settle();
    expect(agent.pushes.all).toEqual([]);
    expect(swarm.watched.settled().state.counts.queued).toBe(2);
    store.bytesMax = 10 * bytesMax;
    for (let heartbeats = 0; heartbeats < 20 && agent.pushes.all.length === 0; heartbeats += 1) {
      await agent.heartbeat([], 0);
      await pass(limits.heartbeatMs);
    }
    expect(agent.pushes.all[0]).toMatchObject({ type: "assign" });
  });
});
