// Snapshots that stood for what was purged, and cannot be read any more while a leader runs: it learns of it when its
// server was away, and within an hour, and saves the state that only it holds; whoever starts afterwards has
// everything.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { UnreachableError } from "../../src/errors.ts";
import type { MemoryJournal } from "../../src/journal/memory.ts";
import type { MemorySnapshotStore } from "../../src/journal/memory-snapshots.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import { CompactedSwarm, everything, inPageCache } from "../support/compacted-swarm.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { keptLog } from "../support/kept-log.ts";
import { stopped, subjects } from "../support/swarm.ts";

const saved = "no snapshot can be read of what was purged from the journal: the state is saved";

const damaged = "a restart could not read the journal: the state is saved";

let log: ReturnType<typeof keptLog>;
let compacted: CompactedSwarm;
let first: MemoryJournal;
beforeEach(() => {
  log = keptLog();
  compacted = new CompactedSwarm();
});
afterEach(async () => {
  await stopped(compacted.swarm, compacted.clock);
});

async function purged(): Promise<void> {
  first = compacted.journal.open();
  await compacted.start(undefined, { logger: log.logger, journal: first });
  for (let round = 0; round < 3; round += 1) await compacted.work(12);
  expect(compacted.journal.firstSeq).toBeGreaterThan(1);
}

/** Whoever checks the journal reads it before it is purged. */
async function advance(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    await compacted.clock.advance(Math.min(left, 1_000));
    compacted.swarm.watched.settled();
  }
}

/** Of a kill -9. */
async function leaderDies(): Promise<void> {
  const { swarm } = compacted;
  swarm.watched.settled();
  first.setOffline(true);
  swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
}

const times = (sentence: string) => log.lines.filter(({ msg }) => msg.includes(sentence)).length;
const failure = async () => (await compacted.swarm.client.status()).journal.snapshotFailure;

async function expectRestartHasAll(): Promise<void> {
  const replay = await compacted.restarted();
  expect(fingerprint(replay.state)).toBe(fingerprint(compacted.swarm.watched.settled().state));
}

describe("where no snapshot can be read", () => {
  it("once its server was away, the leader saves its own state, once, and a restart has all", async () => {
    await purged();
    compacted.spoilAll();
    await expect(compacted.restarted()).rejects.toThrow("no snapshot can be read");
    await compacted.reconnect();
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
    expect(await failure()).toBeUndefined();
    await compacted.work(1);
    await compacted.reconnect();
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
  });

  it("a leader whose server was never away finds it within an hour", async () => {
    await purged();
    compacted.spoilAll();
    compacted.failures = Number.POSITIVE_INFINITY; // or making the next would find it
    await compacted.clock.advance(limits.snapshotCheckMs + limits.snapshotRetryMsMax);
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
  });

  it("a leader that hears of somebody who can read none finds it within seconds, and that one goes on", async () => {
    await purged();
    const { swarm, clock } = compacted;
    compacted.spoilAll();
    compacted.failures = Number.POSITIVE_INFINITY;
    await clock.advance(limits.snapshotRetryMs);
    const starting = swarm.startAnother("c2");
    await clock.advance(4 * limits.catchUpRetryMs);
    const standby = await starting;
    expect(times(saved)).toBe(1);
    expect(fingerprint(standby.settledState ?? expect.fail("it leads"))).toBe(
      fingerprint(swarm.watched.settled().state),
    );
  });

  it("…also where nothing says any more that there were any, and by who leads since then", async () => {
    await purged();
    const { swarm } = compacted;
    const standby = await swarm.startAnother("c2");
    compacted.loseManifests();
    compacted.failures = Number.POSITIVE_INFINITY; // or making the next would find it
    await leaderDies();
    await advance(2 * limits.leaderTimeoutMs);
    await standby.whenLeading();
    const starting = swarm.startAnother("c3");
    await advance(limits.snapshotRetryMs + 4 * limits.catchUpRetryMs);
    await starting;
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
  });

  it("a leader that begins with none, of a journal that was purged, finds it within seconds", async () => {
    await purged();
    const standby = await compacted.swarm.startAnother("c2");
    compacted.loseManifests();
    compacted.failures = Number.POSITIVE_INFINITY;
    await leaderDies();
    await advance(2 * limits.leaderTimeoutMs);
    await standby.whenLeading();
    await advance(limits.snapshotRetryMs);
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
  });

  it("who starts waits for a standby that holds all, and has yet to lead", async () => {
    await purged();
    const { swarm, journal } = compacted;
    const own = journal.open();
    const standby = await swarm.startAnother("c2", own);
    compacted.spoilAll();
    own.setOffline(true);
    await leaderDies();
    const starting = swarm.startAnother("c3");
    await advance(2 * limits.lossPatienceRunningMs);
    expect(times("halted")).toBe(0);
    own.setOffline(false);
    await advance(2 * limits.leaderTimeoutMs + limits.snapshotRetryMs + 4 * limits.catchUpRetryMs);
    const started = await starting;
    await standby.whenLeading();
    expect(times(saved)).toBe(1);
    expect(fingerprint(started.settledState ?? expect.fail("it leads"))).toBe(
      fingerprint(standby.settledState ?? expect.fail("it is settled")),
    );
  });

  it("a leader asks less and less often, whatever others say, where it can read them", async () => {
    await purged();
    const { swarm } = compacted;
    const { finds } = compacted;
    const liar = { id: "liar", term: 0, idx: 0, leading: false, lacksSnapshots: true };
    for (let second = 0; second < 60; second += 1) {
      swarm.client.transport.publish(subjects.coordinator, encode(liar));
      await advance(1_000);
    }
    const asked = compacted.finds - finds;
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThan(6);
  });

  it("whoever fails to make the next one over it has it saved", async () => {
    await purged();
    compacted.spoilAll();
    await compacted.work(12);
    expect(times(saved)).toBe(1);
    await expectRestartHasAll();
  });

  it("records that are lost while it is saved are taken in, and the audit begins behind them", async () => {
    await purged();
    const { swarm, journal, clock } = compacted;
    compacted.spoilAll();
    compacted.putFate = "lose";
    await compacted.reconnect();
    expect(times(saved)).toBe(1);
    const before = swarm.watched.settled().state.auditFirstIdx;
    const lostSeq = journal.lastSeq - 1;
    journal.loseMiddle(lostSeq, 1);
    await clock.advance(2 * limits.leaderTimeoutMs); // somebody has looked
    compacted.putFate = "deliver";
    await clock.advance(2 * limits.rescueRetryMs);
    expect(before).toBeLessThan(lostSeq);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(lostSeq + 1);
    await expectRestartHasAll();
  });

  it("nothing is saved while the whole journal is there", async () => {
    await compacted.start(everything, { logger: log.logger });
    await compacted.work(12);
    compacted.spoilAll();
    await compacted.reconnect();
    expect(times(saved)).toBe(0);
    await expectRestartHasAll();
  });
});

it("where the newest cannot be read, another is made of the one before it at once", async () => {
  await purged();
  const made = times("a snapshot was made");
  compacted.spoilNewest();
  await compacted.reconnect();
  expect(times("a snapshot was made")).toBe(made + 1);
  expect(times(saved)).toBe(0);
  await expectRestartHasAll();
});

it("where the newest could not be read before a term, its leader makes another at once", async () => {
  await purged();
  const { swarm, clock } = compacted;
  await swarm.coordinator.stop();
  compacted.spoilNewest();
  compacted.everyEvents = 1_000;
  const next = await swarm.startAnother("c2");
  await next.whenLeading();
  expect((await compacted.found()).found.unreadable).toHaveLength(1);
  await clock.advance(limits.pulseMs * 3);
  expect((await compacted.found()).found.unreadable).toEqual([]);
});

/** Another leads from then on, and has made another snapshot. */
async function expectMadeWithin(ms: number, next: Coordinator): Promise<void> {
  expect((await compacted.found()).found.unreadable).toHaveLength(1);
  await compacted.swarm.coordinator.stop();
  await next.whenLeading();
  await advance(ms);
  expect((await compacted.found()).found.unreadable).toEqual([]);
  await expectRestartHasAll();
}

it("where the newest rots under a standby, another is made seconds after it leads", async () => {
  await purged();
  compacted.everyEvents = 1_000;
  const next = await compacted.swarm.startAnother("c2");
  await advance(limits.snapshotCheckMs + limits.snapshotRetryMs);
  compacted.spoilNewest();
  await expectMadeWithin(2 * limits.snapshotRetryMs, next);
});

it("whoever asks meanwhile what a snapshot stands for, and meets one that rotted, has another made", async () => {
  await purged();
  compacted.everyEvents = 1_000;
  const next = await compacted.swarm.startAnother("c2");
  await compacted.work(12); // one that it has not read, and a purge that it has yet to see
  compacted.spoilNewest();
  await expectMadeWithin(limits.journalLookMs + limits.pulseMs * 3, next);
});

it("what the leader before did not purge is not purged by a snapshot that rotted since it was read", async () => {
  compacted.everyEvents = 10;
  first = compacted.journal.open();
  first.purgeBelow = async () => Promise.reject(new UnreachableError("nobody answers"));
  await compacted.start(undefined, { logger: log.logger, journal: first });
  for (let round = 0; round < 3; round += 1) await compacted.work(12);
  const { swarm, journal } = compacted;
  compacted.everyEvents = 1_000_000;
  await swarm.coordinator.stop();
  const next = await swarm.startAnother("c2", inPageCache(journal.open()));
  await next.whenLeading();
  await advance(limits.snapshotSyncMs / 2);
  compacted.spoilAll();
  await advance(limits.snapshotSyncMs);
  expect(journal.firstSeq).toBe(1);
  await expectRestartHasAll();
  expect((await compacted.found()).found.unreadable).toEqual([]); // another was made
});

it("a record that rots behind the newest has the leader save its state once a second making meets it", async () => {
  await purged();
  const { journal } = compacted;
  await compacted.work(2);
  const rotten = journal.at(journal.lastSeq) ?? expect.fail("it is there");
  await compacted.work(4);
  rotten.bytes.fill(0);
  await expect(compacted.restarted()).rejects.toThrow("batches before it are missing");
  await compacted.work(12);
  expect(times(damaged)).toBe(0); // what one meets may be another's purge
  await advance(limits.snapshotRetryMs + limits.pulseMs);
  expect(times(damaged)).toBe(1);
  await expectRestartHasAll();
  await compacted.work(12);
  expect(times("a snapshot was made")).toBeGreaterThan(1);
  expect(await failure()).toBeUndefined();
  await expectRestartHasAll();
});

it("what keeps one from being made keeps nobody from asking whether the others can be read", async () => {
  await purged();
  compacted.failures = Number.POSITIVE_INFINITY;
  await advance(2 * limits.snapshotRetryMsMax);
  compacted.spoilAll();
  await compacted.reconnect();
  expect(times(saved)).toBe(1);
  await expectRestartHasAll();
});

it("storage that was away for long, and is back, has one that failed tried again as soon as ever", async () => {
  await purged();
  const { swarm } = compacted;
  await swarm.coordinator.stop();
  compacted.everyEvents = 1_000_000;
  compacted.opened = undefined;
  const next = await swarm.startAnother("c2");
  await next.whenLeading();
  const snapshots = compacted.opened ?? expect.fail("it opened the snapshots");
  (snapshots as MemorySnapshotStore).setOffline(true);
  await compacted.reconnect("c2");
  await advance(2 * limits.snapshotRetryMsMax);
  (snapshots as MemorySnapshotStore).setOffline(false);
  await advance(limits.snapshotRetryMsMax);
  compacted.spoilNewest();
  compacted.failures = 1;
  await compacted.reconnect("c2");
  expect(compacted.failures).toBe(0);
  await advance(limits.snapshotRetryMs + limits.pulseMs);
  expect((await compacted.found()).found.unreadable).toEqual([]);
});

it("storage that is away is not taken for lost", async () => {
  await purged();
  const snapshots = compacted.opened ?? expect.fail("the leader opened the snapshots");
  snapshots.setOffline(true);
  await compacted.reconnect();
  expect(times(saved)).toBe(0);
  expect(times("it could not be asked whether the snapshots can be read")).toBe(1);
  snapshots.setOffline(false);
});
