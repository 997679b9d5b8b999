// A history's records in a journal in memory, with records among them that everybody skips, and the snapshots beside
// it.

import { pino } from "pino";
import { type Clock, systemClock } from "../../src/clock.ts";
import { hashOf } from "../../src/journal/batch.ts";
import type { JournalRecord } from "../../src/chain/journal.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { type MemorySnapshotFaults, MemorySnapshots } from "../../src/journal/memory-snapshots.ts";
import { type Folded, foldedBehind, Replay } from "../../src/journal/replay.ts";
import type { FoundSnapshots } from "../../src/journal/snapshot/found.ts";
import { makeSnapshot, type SnapshotMade, type SnapshotOrder } from "../../src/journal/snapshot/make.ts";
import type { Manifest } from "../../src/journal/snapshot/manifest.ts";
import { readManifests } from "../../src/journal/snapshot/manifests.ts";
import { findSnapshots, restoreAndRead } from "../../src/journal/snapshot/restore.ts";
import { snapshotNow } from "../../src/journal/snapshot/snapshot-now.ts";

const alien = Buffer.from("somebody else's");

export class StoredHistory {
  readonly journal = new MemoryJournalStore();
  readonly snapshots: MemorySnapshots;
  clock: Clock = systemClock;
  /** Of whoever makes snapshots and starts. */
  readonly snapshotFaults: MemorySnapshotFaults = {};
  /** Everything, folded from the first record. */
  readonly whole = new Replay();

  /** @param deadBefore how many dead records stand before each record, over and over */
  constructor(
    records: readonly JournalRecord[],
    deadBefore: readonly number[] = [0],
    snapshots = new MemorySnapshots(),
  ) {
    this.snapshots = snapshots;
    for (const [place, { bytes }] of records.entries()) {
      for (let dead = 0; dead < (deadBefore[place % deadBefore.length] ?? 0); dead += 1) this.add(alien);
      this.add(bytes);
    }
  }

  add(bytes: Uint8Array): void {
    const seq = this.journal.insertRival(bytes);
    this.whole.take({ seq, bytes });
  }

  /** Made of what the journal holds up to a record, by default the last. */
  async snapshot(untilSeq = this.journal.lastSeq, order: Partial<SnapshotOrder> = {}): Promise<Manifest> {
    await this.make(untilSeq, order);
    const [furthest] = await this.manifests();
    if (furthest === undefined) throw new Error("no snapshot was made");
    return furthest;
  }

  make(untilSeq = this.journal.lastSeq, order: Partial<SnapshotOrder> = {}): Promise<SnapshotMade> {
    const all = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
    const now = this.whole.state.at;
    return makeSnapshot(this.#deps(), {
      untilSeq,
      synced: this.snapshots
        .places("manifest")
        .map((place) => hashOf(this.snapshots.at(place)?.bytes ?? alien)),
      retention: all,
      now,
      journalBytes: 0,
      journalBytesMax: undefined,
      cameBytes: 0,
      isShort: false,
      ...order,
    });
  }

  /** All of it, to go on behind a record. */
  foldedBehind(seq: number): Folded {
    return foldedBehind(this.whole, seq);
  }

  /** As by who has that in memory. */
  saveNow(folded: Folded): Promise<Manifest> {
    const { snapshots: store, ...deps } = this.#deps();
    return snapshotNow(folded, { store, ...deps });
  }

  /** Which a restart would begin at. */
  find(): Promise<FoundSnapshots> {
    return findSnapshots(this.#deps());
  }

  /** The one that reaches furthest first. */
  async manifests(): Promise<Manifest[]> {
    const { snapshots, logger } = this.#deps();
    return (await readManifests(snapshots, logger)).map(({ manifest }) => manifest);
  }

  /** As a coordinator that starts. */
  async restart(): Promise<Replay> {
    const { replay, requireWhole } = await restoreAndRead(this.#deps(), (from) => (record) => {
      from.replay.take(record);
    });
    requireWhole();
    return replay;
  }

  #deps() {
    const logger = pino({ level: "silent" });
    return {
      journal: this.journal.open(),
      snapshots: this.snapshots.open(this.snapshotFaults),
      clock: this.clock,
      logger,
    };
  }
}
