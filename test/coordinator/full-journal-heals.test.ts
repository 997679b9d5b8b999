// A journal that takes no batch and is never given more room: what snapshots stand for goes first, and is put on record
// behind that, whoever leads.

import { afterEach, describe, expect, it, vi } from "vitest";
import type { Journal } from "../../src/chain/journal.ts";
import { RoomMaker } from "../../src/coordinator/compaction/room-maker.ts";
import { SyncedSnapshots } from "../../src/coordinator/compaction/synced-snapshots.ts";
import { UnreachableError } from "../../src/errors.ts";
import { type BatchIndex, batchIndex } from "../../src/ids.ts";
import { decodeManifest } from "../../src/journal/snapshot/manifest.ts";
import { limits } from "../../src/limits.ts";
import { CompactedSwarm, everything, inPageCache } from "../support/compacted-swarm.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { roleOf } from "../support/swarm.ts";

const bytesMax = 100_000;
let started: CompactedSwarm | undefined;
afterEach(async () => {
  if (started === undefined) return;
  const stopped = started.swarm.stop();
  await started.clock.advance(limits.handOverMs);
  await stopped;
  started = undefined;
});

/** Stopped behind the test. @param bytes of the journal, of which there is no bound without */
function aSwarm(bytes?: number): CompactedSwarm {
  started = new CompactedSwarm(bytes);
  return started;
}

/** It saves its state every 4 events, and has done so for so many tasks. */
async function snapshotting(tasks: number, bytes?: number): Promise<CompactedSwarm> {
  const compacted = aSwarm(bytes);
  compacted.everyEvents = 4;
  await compacted.start(everything);
  await load(compacted, tasks);
  return compacted;
}

/** So many tasks of 5 kB, each followed by time for a snapshot. */
async function load(swarm: CompactedSwarm, tasks: number): Promise<void> {
  for (let task = 0; task < tasks; task += 1) await swarm.work(1, "x".repeat(5_000));
}

/** A task for which there is no room, though the journal is not short of it. */
function submitLarge(swarm: CompactedSwarm, bytes = 50_000): Promise<unknown> {
  return swarm.swarm.client.submit([{ id: "large", kind: "k", payload: "x".repeat(bytes) }]);
}

/** The journal is purged to where the older of two snapshots reaches. @returns its first batch from then on */
function purgedByOlder({ journal, snapshots }: CompactedSwarm): BatchIndex {
  const [older = 0] = snapshots.places("manifest");
  const { position } = decodeManifest(snapshots.at(older)?.bytes ?? expect.fail("there are two"));
  journal.purgeBelow(position.seq + 1);
  return batchIndex(position.idx + 1);
}

/** Time passes, and the journal is read as it is written. */
async function passWatched({ clock, swarm }: CompactedSwarm, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += limits.pulseMs) {
    await clock.advance(limits.pulseMs);
    swarm.watched.settled();
  }
}

/** The first leader has died, and another campaigns in a journal without room. */
async function campaignWithoutRoom({ swarm, journal, clock }: CompactedSwarm, own: Journal) {
  swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
  const stopping = swarm.coordinator.stop();
  await clock.advance(limits.handOverMs);
  await stopping;
  swarm.watched.settled();
  journal.insertRival(Buffer.alloc(bytesMax - journal.usage.bytes - 10));
  const starting = swarm.startAnother("c2", own);
  await clock.advance(limits.leaderTimeoutMs * 4);
  return await starting;
}

describe("a full journal", () => {
  it("is purged to the older of two snapshots, takes what it had no room for, and says so", async () => {
    const compacted = await snapshotting(10, bytesMax);
    expect(compacted.journal.firstSeq).toBe(1);
    const answer = submitLarge(compacted);
    await passWatched(compacted, limits.journalFullRetryMs * 4);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    const { state } = compacted.swarm.watched.settled();
    expect(state.auditFirstIdx).toBeGreaterThan(1);
    expect(compacted.journal.firstSeq).toBe(state.auditFirstIdx);
    const replay = await compacted.restarted();
    expect(fingerprint(replay.state)).toBe(fingerprint(compacted.swarm.watched.settled().state));
  });

  it("without any snapshot has one made, and is purged to that", async () => {
    const compacted = aSwarm(bytesMax);
    await compacted.start(everything);
    const { client, watched } = compacted.swarm;
    for (let task = 0; task < 14; task += 1)
      await client.submit([{ id: `t${task}`, kind: "k", payload: "x".repeat(5_000) }]);
    expect(compacted.snapshots.places("manifest")).toHaveLength(0); // for no time has passed
    watched.settled();
    const answer = submitLarge(compacted);
    await passWatched(compacted, limits.journalRoomRetryMs * 2);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    expect(compacted.journal.firstSeq).toBeGreaterThan(10);
    expect(fingerprint((await compacted.restarted()).state)).toBe(
      fingerprint(compacted.swarm.watched.settled().state),
    );
  });

  it.each([
    ["snapshots rot", (swarm: CompactedSwarm) => swarm.spoilAll()],
    ["manifests rot", (swarm: CompactedSwarm) => swarm.loseManifests()],
  ])("whose %s before it may be purged by them has another made", async (_, spoil) => {
    const compacted = aSwarm(bytesMax);
    compacted.everyEvents = 1_000_000;
    const { journal, snapshots } = compacted;
    await compacted.start(everything, { journal: inPageCache(journal.open()) });
    await load(compacted, 14);
    const unanswered = submitLarge(compacted);
    unanswered.catch(() => undefined); // whoever asked asks again
    await passWatched(compacted, limits.journalRoomRetryMs * 2);
    expect(snapshots.places("manifest")).not.toHaveLength(0);
    spoil(compacted);
    await passWatched(compacted, limits.snapshotSyncMs + limits.journalRoomRetryMs * 4);
    expect(journal.firstSeq).toBeGreaterThan(10);
    expect(await submitLarge(compacted)).toMatchObject({ answers: [{ ok: true }] });
    expect(fingerprint((await compacted.restarted()).state)).toBe(
      fingerprint(compacted.swarm.watched.settled().state),
    );
  });

  it("whose snapshots rot one after the other has them made less and less often", async () => {
    const compacted = aSwarm(bytesMax);
    const { journal, snapshots } = compacted;
    await compacted.start(everything, { journal: inPageCache(journal.open()) });
    await load(compacted, 14);
    submitLarge(compacted).catch(() => undefined); // there never is room
    await passWatched(compacted, limits.journalRoomRetryMs * 2);
    const before = snapshots.places("manifest").length;
    for (let passedMs = 0; passedMs < 60_000; passedMs += limits.pulseMs) {
      compacted.spoilAll();
      await passWatched(compacted, limits.pulseMs);
    }
    expect(snapshots.places("manifest").length - before).toBeLessThan(6);
    expect(snapshots.places("manifest").length - before).toBeGreaterThan(2);
  });

  it("that is purged by the older of two, because the newest rotted, has another made once it takes batches", async () => {
    const compacted = await snapshotting(10);
    const { swarm, journal } = compacted;
    await swarm.coordinator.stop();
    compacted.everyEvents = 1_000_000;
    let isFull = false;
    const full = { kind: "full", message: "no room" } as const;
    const own = journal.open({ onRequest: () => (isFull && journal.firstSeq === 1 ? full : "deliver") });
    const next = await swarm.startAnother("c2", own);
    await next.whenLeading();
    await passWatched(compacted, limits.pulseMs * 3);
    compacted.spoilNewest();
    isFull = true;
    const answer = swarm.client.submit([{ id: "late", kind: "k" }]);
    await passWatched(compacted, limits.journalRoomRetryMs * 2);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    expect(journal.firstSeq).toBeGreaterThan(1);
    expect((await compacted.found()).found.unreadable).toEqual([]);
  });

  it("has a snapshot made at once, however often one could not be made before", async () => {
    const compacted = aSwarm(bytesMax);
    compacted.everyEvents = 4;
    compacted.failures = Number.POSITIVE_INFINITY;
    await compacted.start(everything);
    await load(compacted, 6);
    await passWatched(compacted, 34 * limits.snapshotRetryMs); // the next try is in minutes
    compacted.failures = 0;
    const answer = submitLarge(compacted);
    await passWatched(compacted, limits.journalRoomRetryMs * 2);
    expect(compacted.journal.firstSeq).toBeGreaterThan(10);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
  });

  it("in which nobody leads is purged by who campaigns, and the record says so once the term has begun", async () => {
    const compacted = await snapshotting(14, bytesMax);
    const { swarm, journal } = compacted;
    const next = await campaignWithoutRoom(compacted, journal.open());
    expect(await next.whenLeading()).toBe(2);
    await passWatched(compacted, limits.leaderTimeoutMs);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(journal.firstSeq);
    expect(await swarm.client.submit([{ id: "behind", kind: "k" }])).toMatchObject({
      answers: [{ ok: true }],
    });
  });

  it("…for which a snapshot counts anew that a server may have lost which was away", async () => {
    const compacted = await snapshotting(8, bytesMax);
    const { journal } = compacted;
    const next = await campaignWithoutRoom(compacted, inPageCache(journal.open()));
    await passWatched(compacted, limits.snapshotSyncMs / 2);
    await compacted.reconnect("c2");
    await passWatched(compacted, limits.snapshotSyncMs - limits.journalRoomRetryMs * 2);
    expect(journal.firstSeq).toBe(1);
    await passWatched(compacted, limits.journalRoomRetryMs * 4);
    expect(journal.firstSeq).toBeGreaterThan(1);
    expect(await next.whenLeading()).toBe(2);
  });

  /** Nothing of the journal can be purged: what stands behind the newest snapshot fills more than half of it. */
  async function filledBehindSnapshots() {
    const compacted = aSwarm(bytesMax);
    compacted.everyEvents = 4;
    await compacted.start(everything);
    const { swarm, journal, snapshots } = compacted;
    const next = await swarm.startAnother("c2");
    await load(compacted, 4);
    compacted.failures = Number.POSITIVE_INFINITY;
    await load(compacted, 10);
    const [place = 0] = snapshots.places("manifest").slice(-1);
    journal.purgeBelow(decodeManifest(snapshots.at(place)?.bytes ?? expect.fail("one")).position.seq + 1);
    expect(journal.usage.bytes).toBeGreaterThan(bytesMax / 2);
    return { compacted, next };
  }

  it.each([
    ["a record was lost", ({ journal }: CompactedSwarm) => journal.loseMiddle(journal.lastSeq - 1, 1)],
    ["no snapshot can be read", (compacted: CompactedSwarm) => compacted.spoilAll()],
  ])("…also where %s: who campaigns saves what it read", async (_, lose) => {
    const { compacted, next } = await filledBehindSnapshots();
    const { swarm, journal, clock } = compacted;
    journal.insertRival(Buffer.alloc(bytesMax - journal.usage.bytes - 10));
    swarm.watched.settled();
    lose(compacted);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    const stopping = swarm.coordinator.stop();
    await clock.advance(limits.handOverMs);
    await stopping;
    compacted.failures = 0;
    await clock.advance(limits.leaderTimeoutMs * 4 + limits.journalRoomRetryMs * 10);
    expect(roleOf(next)).toBe("leading");
    expect(await swarm.client.submit([{ id: "behind", kind: "k" }])).toMatchObject({
      answers: [{ ok: true }],
    });
    expect((await compacted.restarted()).state.taskById.size).toBe(15);
  });

  it("…also where who leads cannot, for a batch in flight finds no room: who stands by saves what it read", async () => {
    const { compacted, next } = await filledBehindSnapshots();
    const { swarm, journal, clock } = compacted;
    compacted.spoilAll();
    journal.insertRival(Buffer.alloc(bytesMax * 0.8 - journal.usage.bytes));
    submitLarge(compacted, 30_000).catch(() => undefined); // its request ends before
    await clock.settle();
    journal.insertRival(Buffer.alloc(bytesMax - journal.usage.bytes - 10));
    compacted.failures = 0;
    await passWatched(compacted, limits.fullLeaderMsMax + limits.journalRoomRetryMs * 10);
    expect([roleOf(swarm.coordinator), roleOf(next)]).toEqual(["leading", "standing-by"]);
    expect(await swarm.client.status()).toMatchObject({ tasks: { queued: 15 } });
    expect((await compacted.restarted()).state.taskById.size).toBe(15);
  });

  it("that was purged by a leader that died before it said so is said to be by the next", async () => {
    const compacted = await snapshotting(10, bytesMax);
    const { swarm } = compacted;
    await swarm.coordinator.stop();
    swarm.watched.settled();
    const firstIdx = purgedByOlder(compacted);
    const next = await swarm.startAnother("c2");
    await next.whenLeading();
    await passWatched(compacted, limits.pulseMs * 3);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(firstIdx);
  });

  it("…also where the next is not answered at first who asks where the journal begins", async () => {
    const compacted = await snapshotting(10);
    const { swarm, journal } = compacted;
    await swarm.coordinator.stop();
    swarm.watched.settled();
    const firstIdx = purgedByOlder(compacted);
    compacted.everyEvents = 1_000_000;
    const own = journal.open();
    const next = await swarm.startAnother("c2", own);
    const position = vi.spyOn(own, "position").mockRejectedValue(new UnreachableError("nobody answers"));
    await next.whenLeading();
    await passWatched(compacted, limits.pulseMs);
    expect(position).toHaveBeenCalled();
    position.mockRestore();
    await passWatched(compacted, limits.snapshotRetryMs + limits.pulseMs * 2);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(firstIdx);
  });

  it("…also where the next followed all along, and never read a snapshot", async () => {
    const compacted = aSwarm(bytesMax);
    compacted.everyEvents = 4;
    await compacted.start(everything);
    const { swarm } = compacted;
    const next = await swarm.startAnother("c2");
    await load(compacted, 10);
    swarm.watched.settled();
    const firstIdx = purgedByOlder(compacted);
    await swarm.coordinator.stop();
    await next.whenLeading();
    await passWatched(compacted, limits.pulseMs * 3);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(firstIdx);
  });

  it("that was purged by a leader which had been deposed is said to be by the one that leads", async () => {
    const compacted = await snapshotting(10, bytesMax);
    const { swarm } = compacted;
    const firstIdx = purgedByOlder(compacted);
    await passWatched(compacted, limits.journalLookMs * 2);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(firstIdx);
  });

  it("tells who asks why nothing is answered, and nothing definite", async () => {
    const compacted = aSwarm(bytesMax);
    compacted.everyEvents = 1_000_000;
    compacted.failures = Number.POSITIVE_INFINITY;
    await compacted.start(everything);
    await load(compacted, 14);
    void submitLarge(compacted).catch(() => undefined);
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
});

describe("a journal with little room left", () => {
  it("is kept for the results of what runs: nothing more is assigned until there is room", async () => {
    const compacted = aSwarm(bytesMax);
    await compacted.start(everything);
    const { swarm, journal } = compacted;
    await load(compacted, 2);
    swarm.watched.settled();
    swarm.watched.mayHoldBack = true;
    journal.insertRival(Buffer.alloc(bytesMax * limits.journalUnassignedShare - journal.usage.bytes));
    await passWatched(compacted, limits.journalUsageMs + limits.pulseMs);
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    await compacted.clock.settle();
    expect(agent.pushes.all).toEqual([]);
    expect(swarm.watched.settled().state.counts.queued).toBe(2);
    for (let beats = 0; beats < 120 && agent.pushes.all.length === 0; beats += 1) {
      await agent.beat([], 0);
      await passWatched(compacted, limits.heartbeatMs);
    }
    expect(agent.pushes.all[0]).toMatchObject({ type: "assign" });
    expect(swarm.watched.settled().state.counts.queued).toBe(0);
  });
});

describe("what is purged of a full journal", () => {
  it("is left while only snapshots stand for it that a server may not have synced", async () => {
    const compacted = await snapshotting(8);
    const { journal, snapshots, swarm } = compacted;
    const log = keptLog();
    const clock = new ManualClock();
    const unsynced = inPageCache(journal.open());
    const { durability } = unsynced;
    const maker = new RoomMaker({
      journal: unsynced,
      snapshots: snapshots.open(),
      places: (await compacted.restarted()).places,
      synced: new SyncedSnapshots({ durability, clock }),
      logger: log.logger,
    });
    const [older, newest] = snapshots.places("manifest").map((place) => {
      const { bytes } = snapshots.at(place) ?? expect.fail("it is there");
      return { place, position: decodeManifest(bytes).position };
    });
    if (older === undefined || newest === undefined) return expect.fail("there are two");
    const { found } = await compacted.found();
    const keptSeq = journal.lastSeq;
    swarm.watched.settled();
    expect(await maker.purge(undefined, { keptSeq })).toBeUndefined();
    expect(await maker.purge(found.read, { keptSeq })).toBeUndefined();
    clock.stall(limits.snapshotSyncMs - 1);
    expect(await maker.purge(found.read, { keptSeq })).toBeUndefined();
    clock.stall(1);
    expect(await maker.purge(found.read, { keptSeq })).toBe(older.position.seq + 1);
    expect(await maker.purge(found.read, { keptSeq })).toBe(Math.min(newest.position.seq + 1, keptSeq));
    expect(await maker.purge(found.read, { keptSeq })).toBeUndefined();
  });
});
