// A swarm in memory whose leader makes a snapshot after every few events and keeps little of its journal, and what can
// be done to what it stored.

import { expect } from "vitest";
import type { Journal } from "../../src/chain/journal.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import type { Compaction } from "../../src/coordinator/compaction/compactor.ts";
import { type Snapshotter, snapshotterHere } from "../../src/coordinator/compaction/snapshotter.ts";
import {
  type MemorySnapshotStore,
  MemorySnapshots,
  type PutFate,
} from "../../src/journal/memory-snapshots.ts";
import { decodeManifest } from "../../src/journal/snapshot/manifest.ts";
import { findSnapshots, restoreAndRead } from "../../src/journal/snapshot/restore.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "./manual-clock.ts";
import { silentLogger, startTestSwarm, type TestSwarm, type TestSwarmOptions } from "./swarm.ts";

export const nothing = { ageMs: 0, bytes: 0 };
export const everything = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** As a server keeps it by default: what it stored lately a power failure may take. */
export function inPageCache(journal: Journal): Journal {
  const durability = { class: "page-cache", sentence: "" } as const;
  return Object.defineProperty(journal, "durability", { value: durability });
}

export class CompactedSwarm {
  readonly clock = new ManualClock();
  readonly journal: MemoryJournalStore;
  readonly snapshots = new MemorySnapshots();
  /** Fails so many times before it works. */
  failures = 0;
  /** How often it was asked whether the snapshots can be read. */
  finds = 0;
  /** What becomes of what is put into the storage of snapshots. */
  putFate: PutFate = "deliver";
  /** After so many events a snapshot is due. */
  everyEvents = 10;
  swarm!: TestSwarm;
  /** The leader's way to the snapshots. */
  opened: MemorySnapshotStore | undefined;
  #tasks = 0;

  constructor(bytesMax?: number) {
    this.journal = new MemoryJournalStore(bytesMax === undefined ? {} : { bytesMax });
  }

  async start(retention = nothing, options: TestSwarmOptions = {}): Promise<this> {
    const compaction = (journal: Journal): Compaction => {
      const snapshots = this.snapshots.open({ onPut: () => this.putFate });
      this.opened ??= snapshots;
      const here = snapshotterHere({ journal, snapshots, clock: this.clock, logger: silentLogger });
      const snapshotter: Snapshotter = {
        make: async (order, signal) => {
          this.failures -= 1;
          if (this.failures >= 0) throw new Error("the thread died");
          return await here.make(order, signal);
        },
        find: (lastSeq, signal) => {
          this.finds += 1;
          return here.find(lastSeq, signal);
        },
      };
      return { snapshots, snapshotter, retention, everyEvents: this.everyEvents };
    };
    const { clock, journal: store } = this;
    this.swarm = await startTestSwarm({ clock, store, compaction, ...options });
    return this;
  }

  /** So many batches of a task each, and time for what they are the reason of. */
  async work(batches: number, payload = "x"): Promise<void> {
    for (let batch = 0; batch < batches; batch += 1) {
      this.#tasks += 1;
      const answer = await this.swarm.client.submit([{ id: `t${this.#tasks}`, kind: "k", payload }]);
      expect(answer).toMatchObject({ answers: [{ ok: true }] });
      this.swarm.watched.settled(); // before it is purged
    }
    await this.clock.advance(limits.pulseMs * 3);
  }

  /** Loses the chunks of the newest snapshot. */
  spoilNewest(): void {
    this.#spoil(this.snapshots.places("manifest").at(-1) ?? expect.fail("there is a snapshot"));
  }

  spoilAll(): void {
    for (const place of this.snapshots.places("manifest")) this.#spoil(place);
  }

  /** Nothing says any more that there were snapshots. */
  loseManifests(): void {
    for (const place of this.snapshots.places("manifest")) this.snapshots.lose(place);
  }

  /** The server is away for a moment, and back. */
  async reconnect(id = "c1"): Promise<void> {
    const leader = this.swarm.transportById.get(id) ?? expect.fail(`${id} has a connection`);
    this.swarm.hub.cut(leader);
    await this.clock.advance(limits.pulseMs);
    this.swarm.hub.heal(leader);
    await this.clock.advance(limits.pulseMs * 3);
  }

  #spoil(manifest: number): void {
    const { chunks } = decodeManifest(this.snapshots.at(manifest)?.bytes ?? new Uint8Array());
    for (const [chunk] of chunks) if (this.snapshots.at(chunk) !== undefined) this.snapshots.lose(chunk);
  }

  /** Which snapshot a restart would begin at. */
  async found() {
    return { found: await findSnapshots(this.#deps()) };
  }

  #deps() {
    return {
      journal: this.journal.open(),
      snapshots: this.snapshots.open(),
      clock: this.clock,
      logger: silentLogger,
    };
  }

  async restarted() {
    const { replay, requireWhole } = await restoreAndRead(this.#deps(), (from) => (record) => {
      from.replay.take(record);
    });
    requireWhole();
    return replay;
  }
}
