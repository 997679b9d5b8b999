// What faults spare, so that no seed loses what nobody could bring back: and that they spare it no longer than that.

import { beforeEach, describe, expect, it } from "vitest";
import { batchIndex } from "../../../src/ids.ts";
import { encodeBatch } from "../../../src/journal/batch.ts";
import { decodeManifest } from "../../../src/journal/snapshot/manifest.ts";
import { limits } from "../../../src/limits.ts";
import { subjectsOf } from "../../../src/protocol/subjects.ts";
import { CoordinatorParty } from "../../../src/sim/fault/coordinator-party.ts";
import { STREAM_BYTES } from "../../../src/sim/fault/fault.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { SwarmVictims } from "../../../src/sim/fault/victims.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const lost = { lossShare: 1, duplicateShare: 0, reorderShare: 0, lateShare: 0, lateMs: 0, heldUntilMs: 0 };

let habitat: Habitat;
let truth: JournalTruth;
let parties: readonly CoordinatorParty[];
let victims: SwarmVictims;

const run = (ms: number, isEnough = () => false) =>
  habitat.engine.run(habitat.engine.nowMs + ms, () => {
    truth.readOn();
    return isEnough();
  });
const lives = () => parties.map(({ life }) => life?.name);
const lastSeq = () => habitat.stream.lastSeq;

function setReach(party: string, condition: typeof lost | undefined): void {
  for (const direction of ["up", "down"] as const)
    habitat.linkOf(`${party}/journal`).set(direction, condition);
}

async function begin({
  everyEvents,
  ids = ["c1", "c2"],
}: {
  everyEvents: number;
  ids?: string[];
}): Promise<void> {
  habitat = new Habitat(new SeededRandom("victims"));
  truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const pace = { everyEvents, retention, snapshotSyncMs: 1_000 };
  parties = ids.map((id) => new CoordinatorParty({ id, leaderTimeoutMs: 1_000, ...pace }, habitat, truth));
  truth.pending = () => parties.flatMap(({ pending }) => pending);
  victims = new SwarmVictims({ habitat, truth, coordinators: parties, agents: [], clients: [] });
  for (const party of parties) party.start();
  await run(10_000);
}

beforeEach(() => begin({ everyEvents: 1_000 }));

describe("the end of the journal", () => {
  it("is lost where all hold it, and comes back", async () => {
    const before = lastSeq();
    victims.cutTail(2);
    expect(lastSeq()).toBe(before - 2);
    expect(truth.isWhole).toBe(false);
    await run(10_000, () => truth.isWhole);
    expect(truth.isWhole).toBe(true);
  });

  it("finds the room that it took: the stream is not bounded to less before it is back", async () => {
    victims.cutTail(2);
    victims.boundJournal(1);
    expect(habitat.stream.fullShare).toBeLessThan(1);
    await run(10_000, () => truth.isWhole);
    victims.boundJournal(1);
    expect(habitat.stream.fullShare).toBe(1);
  });

  it("is lost only as far back as they have read it", () => {
    const held = truth.storedSince(3_000);
    const before = lastSeq();
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(before);
    victims.cutTail(before);
    expect(lastSeq()).toBe(before - held);
  });

  it.each<readonly [string, (party: string) => void]>([
    ["does not run", (party) => victims.crash(party, 500)],
    ["was asked to end", (party) => victims.stop(party, 500)],
  ])("is not lost while one %s", (_, strike) => {
    const before = lastSeq();
    strike(parties.find(({ isLeading }) => !isLeading)?.id ?? "");
    victims.cutTail(2);
    victims.makeHole(2);
    expect(habitat.occurrences.counts()).not.toHaveProperty("hole-made");
    expect(lastSeq()).toBe(before);
  });

  it("is not lost while a leader that was deposed has not heard of it", async () => {
    const deposed = victims.leader();
    setReach(deposed, lost);
    await run(20_000, () => truth.state.leader !== deposed);
    await run(1_000);
    const before = lastSeq();
    victims.cutTail(2);
    victims.makeHole(2);
    expect(lastSeq()).toBe(before);
    expect(habitat.occurrences.counts()).not.toHaveProperty("hole-made");
    setReach(deposed, undefined);
    await run(10_000);
    const later = lastSeq();
    victims.cutTail(2);
    expect(lastSeq()).toBe(later - 2);
  });
});

describe("the end of the journal that a standby missed", () => {
  it.each([
    [undefined, true],
    [{ ...lost, lossShare: 0, lateShare: 1, lateMs: 4_000 }, false],
  ])("is lost where that one hears who holds it: its line was %j", async (line, isLost) => {
    await begin({ everyEvents: 1_000, ids: ["c1", "c2", "c3"] });
    setReach("c3", lost);
    habitat.linkOf("c3").set("down", line);
    await run(600);
    setReach("c3", undefined);
    habitat.linkOf("c3").set("down", undefined);
    const before = lastSeq();
    victims.loseMissed("c3");
    expect(lastSeq() < before).toBe(isLost);
  });

  it("is not, where that one may have asked before the others read it", async () => {
    await begin({ everyEvents: 1_000, ids: ["c1", "c2", "c3"] });
    setReach("c3", lost);
    await run(4_000);
    await run(5_000, () => truth.storedSince(habitat.engine.nowMs - 5) > 0);
    await run(30);
    setReach("c3", undefined);
    const before = lastSeq();
    victims.loseMissed("c3");
    expect(lastSeq()).toBe(before);
  });
});

describe("an end of the journal of which coordinators hold no record", () => {
  /** They begin at a snapshot, and know of no record before it. */
  async function beginAtSnapshot() {
    await begin({ everyEvents: 20, ids: ["c1", "c2", "c3"] });
    await run(20_000);
    victims.crashCoordinators(500);
    expect(lives()).toEqual([undefined, undefined, undefined]);
    await run(10_000);
  }

  it("is lost with the first record that they hold, and saved by who leads", async () => {
    await beginAtSnapshot();
    const heldFromSeq = Math.min(...parties.map((party) => party.heldFromSeq));
    const { idx } = truth.state;
    const before = lives();
    expect(victims.loseEnd(3, { withLeader: false })).toBe(true);
    expect([lastSeq(), truth.isWhole, truth.savedIdx]).toEqual([heldFromSeq - 4, false, idx]);
    victims.crash("c1", 500);
    await run(30_000, () => truth.isWhole);
    expect([truth.isWhole, truth.state.idx > idx, lives()]).toEqual([true, true, before]);
    expect(habitat.occurrences.counts()).toMatchObject({ "end-lost": 1, "lost-end-saved": 1 });
    await run(10_000);
    victims.crashCoordinators(500);
    await run(10_000);
    expect(parties.some(({ isLeading }) => isLeading)).toBe(true);
    expect(truth.state.auditFirstIdx).toBeGreaterThan(idx);
    expect(habitat.findings).toEqual([]);
  });

  it("is saved by who followed, where the leader ends with it", async () => {
    await beginAtSnapshot();
    const leader = victims.leader();
    expect(victims.loseEnd(1, { withLeader: true })).toBe(true);
    expect([victims.isHeldByFew, parties.find(({ id }) => id === leader)?.life]).toEqual([true, undefined]);
    await run(30_000, () => truth.isWhole);
    expect([victims.isHeldByFew, truth.isWhole, truth.state.leader === leader]).toEqual([false, true, false]);
    expect(habitat.findings).toEqual([]);
  });

  it("is not lost where one holds all records, or there would be no batch left", async () => {
    expect(victims.loseEnd(1, { withLeader: false })).toBe(false);
    await beginAtSnapshot();
    expect(victims.loseEnd(lastSeq(), { withLeader: false })).toBe(false);
    victims.crash("c1", 500);
    expect(victims.loseEnd(1, { withLeader: false })).toBe(false);
    expect(truth.isWhole).toBe(true);
  });
});

it("a cramped journal is fuller than one that takes tasks, and takes what ends them", async () => {
  victims.crampJournal();
  expect(habitat.stream.fullShare).toBeLessThan(limits.journalFullShare); // of little, no batch would find room
  habitat.stream.bound(STREAM_BYTES);
  habitat.stream.intrude(new Uint8Array(192 * 1024));
  victims.crampJournal();
  expect(habitat.stream.fullShare).toBeGreaterThan(limits.journalFullShare);
  expect(habitat.stream.fullShare).toBeLessThan(limits.journalUnassignedShare);
});

describe("while the end of the journal is lost", () => {
  let before: readonly (string | undefined)[];
  let cutAt: number;

  beforeEach(() => {
    victims.cutTail(2);
    before = lives();
    cutAt = lastSeq();
  });

  const strikes: readonly (readonly [string, () => void])[] = [
    ["crash", () => victims.crash("c1", 500)],
    ["blackout", () => victims.blackout("c1", { forMs: 500, ms: 1 })],
    ["stop", () => victims.stop(victims.leader(), 500)],
    ["pause", () => victims.pause("c1", 500)],
    ["alien", () => victims.writeAlien()],
    ["other line", () => victims.writeOtherLine()],
    ["cut", () => victims.cutTail(1)],
    ["hole", () => victims.makeHole(1)],
  ];

  it.each(strikes)("%s spares who holds it, and its place", async (_, strike) => {
    const noted = habitat.occurrences.counts();
    strike();
    expect(lastSeq()).toBe(cutAt);
    expect(habitat.occurrences.counts()).toEqual(noted);
    expect(parties.every(({ life }) => (life?.freeAtMs ?? 0) <= habitat.engine.nowMs)).toBe(true);
    await run(10_000);
    expect(truth.isWhole).toBe(true);
    expect(lives()).toEqual(before);
    expect(habitat.findings).toEqual([]);
  });

  it("nobody is spared once it is back", async () => {
    await run(10_000, () => truth.isWhole);
    victims.crash("c1", 500);
    expect(lives()[0]).toBeUndefined();
  });
});

describe("the newest snapshot", () => {
  beforeEach(() => begin({ everyEvents: 20 }));

  const rotten = () => habitat.occurrences.counts()["snapshot-rotten"] ?? 0;

  it("rots while an older one can be read, which whoever starts begins at", async () => {
    await run(20_000);
    const manifests = habitat.snapshotStream.under(subjectsOf(habitat.swarm).snapshotManifest);
    const [older] = manifests.slice(-2).map((bytes) => decodeManifest(bytes).position.seq);
    habitat.stream.purge(older === undefined ? 0 : older + 1);
    victims.rotSnapshot();
    expect(rotten()).toBe(1);
    for (const { id } of parties) victims.crash(id, 500);
    await run(10_000);
    expect(parties.some(({ isLeading }) => isLeading)).toBe(true);
    expect(habitat.stream.firstSeq).toBeGreaterThan(1);
    expect(habitat.findings).toEqual([]);
  });

  it("does not rot while a full journal may be purged of all that no older one reaches into", async () => {
    await run(20_000);
    const manifests = habitat.snapshotStream.under(subjectsOf(habitat.swarm).snapshotManifest);
    const [older = 0] = manifests.slice(-2).map((bytes) => decodeManifest(bytes).position.seq);
    habitat.stream.purge(older + 1);
    habitat.stream.bound(1);
    victims.rotSnapshot();
    expect(rotten()).toBe(0);
    habitat.stream.bound(2 * habitat.stream.usage.bytes);
    victims.rotSnapshot();
    expect(rotten()).toBe(1);
  });

  it("does not rot while it is the only one that can be read", async () => {
    await run(20_000);
    victims.rotSnapshot();
    victims.rotSnapshot();
    expect(rotten()).toBe(1);
  });

  it("does not rot while it alone stands for what the journal lost, whatever stands before that", async () => {
    await run(20_000);
    victims.makeHole(1);
    const lostSeq = habitat.stream.lastSeq - 1;
    await run(10_000, () => truth.isWhole);
    const manifests = habitat.snapshotStream.under(subjectsOf(habitat.swarm).snapshotManifest);
    const behind = manifests.filter((bytes) => decodeManifest(bytes).position.seq >= lostSeq);
    for (let times = 0; times <= manifests.length; times += 1) victims.rotSnapshot();
    expect(rotten()).toBe(behind.length - 1);
  });

  it("does not rot while the journal is to be purged of what the older one leads to", async () => {
    await run(20_000);
    const { idx, hash, journal, term } = truth.position;
    const trimmed = { type: "AuditTrimmed", firstIdx: idx, reason: "retention" };
    const header = { journal, term, idx: batchIndex(idx + 1), prev: hash, at: truth.state.at };
    habitat.stream.intrude(encodeBatch(header, [JSON.stringify(trimmed)]));
    truth.readOn();
    expect(truth.state.auditFirstIdx).toBe(idx);
    victims.rotSnapshot();
    expect(rotten()).toBe(0);
  });

  it("is rotten, and nobody ends while no other leads to where the journal begins", async () => {
    await run(20_000);
    habitat.stream.purge(habitat.stream.lastSeq);
    const manifests = habitat.snapshotStream.under(subjectsOf(habitat.swarm).snapshotManifest);
    const chunks = manifests.flatMap((bytes) => decodeManifest(bytes).chunks);
    for (const place of new Set(chunks.map(([each]) => each))) habitat.snapshotStream.rot(place);
    victims.crash("c1", 500);
    expect(lives()[0]).toBeDefined();
  });

  it("does not rot while the journal was purged of what the older one leads to", async () => {
    await run(20_000);
    habitat.stream.purge(habitat.stream.lastSeq);
    victims.rotSnapshot();
    expect(rotten()).toBe(0);
  });
});

describe("clocks", () => {
  it("are right until they are skewed, each in its own way", () => {
    expect(parties.map(({ machine }) => machine)).toEqual(parties.map(() => ({ wallSkewMs: 0, rate: 1 })));
    victims.skewClocks();
    const [one, other] = parties.map(({ machine }) => machine);
    expect(one).not.toEqual(other);
    for (const { wallSkewMs, rate } of parties.map(({ machine }) => machine)) {
      expect(Math.abs(wallSkewMs)).toBeLessThanOrEqual(3_000);
      expect(Math.abs(rate - 1)).toBeLessThanOrEqual(0.01);
      expect(rate).not.toBe(1);
    }
  });
});
