// A power failure takes what a server did not sync, of the journal and of its snapshots, and nothing that it was told
// to remove comes back: whatever is purged, a snapshot is left that leads to where the journal begins.

import { afterEach, describe, expect, it } from "vitest";
import { SyncedSnapshots } from "../../src/coordinator/compaction/synced-snapshots.ts";
import { decodeManifest } from "../../src/journal/snapshot/manifest.ts";
import { limits } from "../../src/limits.ts";
import { CompactedSwarm, inPageCache, nothing } from "../support/compacted-swarm.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { ManualClock } from "../support/manual-clock.ts";

let compacted: CompactedSwarm | undefined;
afterEach(async () => {
  await compacted?.swarm.stop();
  compacted = undefined;
});

/** Between two looks at what is stored. */
const LOOK_MS = 1_000;

/** When each snapshot was first seen, by its place. */
class Disk {
  readonly #swarm: CompactedSwarm;
  readonly #sinceMs = new Map<number, number>();

  constructor(swarm: CompactedSwarm) {
    this.#swarm = swarm;
  }

  /** @returns whether a snapshot that was synced leads to where the journal begins */
  look(): boolean {
    const { snapshots, journal, clock } = this.#swarm;
    const now = clock.monotonicMs();
    for (const place of snapshots.places("manifest"))
      if (!this.#sinceMs.has(place)) this.#sinceMs.set(place, now);
    return (
      journal.firstSeq === 1 || this.#synced().some((place) => this.#seqOf(place) >= journal.firstSeq - 1)
    );
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += LOOK_MS) {
      await this.#swarm.clock.advance(LOOK_MS);
      expect(this.look()).toBe(true);
    }
  }

  losePower(): void {
    const { snapshots } = this.#swarm;
    const synced = this.#synced();
    const young = snapshots.places("manifest").filter((place) => !synced.includes(place));
    for (const place of young) {
      const { chunks } = decodeManifest(this.#bytes(place));
      for (const [chunk] of chunks) snapshots.lose(chunk);
      snapshots.lose(place);
    }
  }

  #synced(): number[] {
    const { snapshots, clock } = this.#swarm;
    const before = clock.monotonicMs() - limits.snapshotSyncMs + LOOK_MS;
    return snapshots.places("manifest").filter((place) => (this.#sinceMs.get(place) ?? 0) <= before);
  }

  #seqOf(place: number): number {
    return decodeManifest(this.#bytes(place)).position.seq;
  }

  #bytes(place: number): Uint8Array {
    return this.#swarm.snapshots.at(place)?.bytes ?? expect.fail("it is there");
  }
}

async function aSwarm(): Promise<{ readonly swarm: CompactedSwarm; readonly disk: Disk }> {
  compacted = new CompactedSwarm();
  await compacted.start(nothing, { journal: inPageCache(compacted.journal.open()) });
  return { swarm: compacted, disk: new Disk(compacted) };
}

describe("a journal in a page cache", () => {
  it("is purged only behind a snapshot that was synced, however many are due meanwhile", async () => {
    const { swarm, disk } = await aSwarm();
    for (let round = 0; round < 40; round += 1) {
      await swarm.work(12);
      await disk.pass(limits.snapshotSyncMs / 8);
    }
    expect(swarm.journal.firstSeq).toBeGreaterThan(12 * 20);
    expect(swarm.snapshots.places("manifest")).toHaveLength(2);
    disk.losePower();
    const replay = await swarm.restarted();
    expect(fingerprint(replay.state)).toBe(fingerprint(swarm.swarm.watched.settled().state));
  });

  it("is left by a new leader until it has seen for itself that what it inherited was synced", async () => {
    const { swarm, disk } = await aSwarm();
    await swarm.work(12);
    disk.look();
    const { journal, snapshots } = swarm;
    expect(snapshots.places("manifest")).toHaveLength(1);
    await swarm.swarm.coordinator.stop();
    const next = await swarm.swarm.startAnother("c2", inPageCache(journal.open()));
    await next.whenLeading();
    for (let round = 0; round < 4; round += 1) {
      await swarm.work(12);
      await disk.pass(LOOK_MS);
    }
    expect(journal.firstSeq).toBe(1);
    await disk.pass(limits.snapshotSyncMs);
    await swarm.work(12);
    await disk.pass(LOOK_MS);
    expect(journal.firstSeq).toBeGreaterThan(12);
  });
});

describe("a snapshot", () => {
  const name = { hash: "a", seq: 5 };
  const pageCache = { class: "page-cache", sentence: "" } as const;

  it("is synced once it has stood for two minutes, counted anew where the server was away", () => {
    const clock = new ManualClock();
    const synced = new SyncedSnapshots({ durability: pageCache, clock });
    expect([synced.isSynced(name), synced.isAwaited]).toEqual([false, false]);
    synced.stands(name);
    clock.stall(limits.snapshotSyncMs - 1);
    synced.stands(name);
    expect([synced.isSynced(name), synced.isAwaited, synced.hashes]).toEqual([false, true, []]);
    clock.stall(1);
    expect([synced.isSynced(name), synced.isAwaited, synced.hashes]).toEqual([true, false, ["a"]]);
    synced.stands({ hash: "b", seq: 9 });
    expect([synced.isSynced(name), synced.isAwaited]).toEqual([true, true]);
    synced.forget();
    synced.stands(name);
    expect([synced.isSynced(name), synced.isAwaited]).toEqual([false, true]);
  });

  it("is synced at once where what is stored is, or is gone with the process", () => {
    for (const durability of ["memory", "file", "fsync"] as const) {
      const synced = new SyncedSnapshots({
        durability: { class: durability, sentence: "" },
        clock: new ManualClock(),
      });
      synced.stands(name);
      expect([synced.isSynced(name), synced.isAwaited]).toEqual([true, false]);
    }
  });

  it("of which so many came later is forgotten, and counts anew", () => {
    const synced = new SyncedSnapshots({ durability: pageCache, clock: new ManualClock() });
    for (let seq = 0; seq <= limits.snapshotsKnownMax; seq += 1) synced.stands({ hash: `${seq}`, seq });
    expect(synced.hashes).toEqual([]);
  });
});
