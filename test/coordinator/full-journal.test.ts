// A journal without room for the leader's next batch, and with room for a new term.

import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { insertRecord, recordCount } from "../support/stored.ts";
import { noJitter, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";

const timeoutMs = limits.leaderTimeoutMs;
const bytesMax = 64 * 1024;
const largeBytes = 4 * 1024;
/** More than is kept free of tasks. */
const hugeBytes = 20 * 1024;
let clock: ManualClock;
let store: MemoryJournalStore;
let swarm: TestSwarm;
/** The leader's appends find no room, whatever room is left. */
let isLate: boolean;

beforeEach(async () => {
  clock = new ManualClock();
  isLate = false;
  store = new MemoryJournalStore({ bytesMax });
  const journal = new MemoryJournal(store);
  const segmentOf = journal.segment.bind(journal);
  journal.segment = (number) => {
    const segment = segmentOf(number);
    const append = segment.append.bind(segment);
    segment.append = async (...given) =>
      isLate ? { kind: "full", message: "no room" } : await append(...given);
    return segment;
  };
  swarm = await startTestSwarm({ clock, store, journal, random: noJitter });
});
afterEach(async () => {
  await stopped(swarm, clock);
});

/** The leader's append finds no room, and smaller appends would. */
async function fill(neededBytes = largeBytes): Promise<void> {
  insertRecord(store, Buffer.alloc(bytesMax - store.usage.bytes - neededBytes));
  const unanswered = swarm.client.submit([{ id: "t1", kind: "count", payload: "x".repeat(neededBytes) }]);
  unanswered.catch(() => undefined); // whoever asked asks again
  await clock.settle();
}

it.each([
  ["little", largeBytes],
  ["more than is kept free", hugeBytes],
])("is no reason to depose a leader with announcements, and needs %s", async (_, neededBytes) => {
  await swarm.startAnother("c2");
  await fill(neededBytes);
  const written = recordCount(store);
  await clock.advance(5 * timeoutMs);
  expect(recordCount(store)).toBe(written);
  expect(swarm.watched.settled().state.term).toBe(1);
});

it("is left to the leader for T once the journal has room, because the leader learns of the room late", async () => {
  const way = new MemoryJournal(store);
  let hasRoom = false;
  let sawRoom = false;
  way.usage = async () => {
    sawRoom = hasRoom;
    return hasRoom ? store.usage : { bytes: bytesMax, bytesMax };
  };
  const standby = await swarm.startAnother("c2", way);
  isLate = true;
  await clock.advance(2.5 * timeoutMs);
  hasRoom = true;
  while (!sawRoom) await clock.advance(limits.pulseMs);
  isLate = false;
  await clock.advance(2 * timeoutMs);
  expect(standby.probe.settledState?.term).toBe(1);
  expect(swarm.watched.settled().state.term).toBe(1);
});

it("is asked about anew by a campaigning coordinator, whose last figure may be old", async () => {
  const way = new MemoryJournal(store);
  const usage = way.usage.bind(way);
  let asks = 0;
  way.usage = async () => {
    asks += 1;
    return await usage();
  };
  const standby = await swarm.startAnother("c2", way);
  await clock.advance(timeoutMs);
  const asksBefore = asks;
  let asksWhenLed: number | undefined;
  standby.role$.subscribe((role) => {
    if (role === "leading") asksWhenLed ??= asks;
  });
  await stopped(swarm.coordinator, clock);
  expect(asksWhenLed).toBe(asksBefore + 1);
});

it("does not keep a standby from leading for ever, whatever leader is announced", async () => {
  const standby = await swarm.startAnother("c2");
  await fill();
  swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
  const heartbeat = encode({ id: "c9", term: 1, idx: 1, leading: true, neededBytes: hugeBytes });
  const lie = () => {
    swarm.client.transport.publish(subjects.coordinator, heartbeat);
    clock.after(timeoutMs / 3, lie);
  };
  lie();
  await clock.advance(limits.fullLeaderMsMax - timeoutMs);
  expect(standby.probe.settledState?.term).toBe(1);
  await clock.advance(4 * timeoutMs);
  expect(await standby.whenLeading()).toBe(2);
});

it("does not keep a standby from leading without a leader's announcement", async () => {
  const standby = await swarm.startAnother("c2");
  await fill();
  swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
  await clock.advance(4 * timeoutMs);
  expect(await standby.whenLeading()).toBe(2);
});
