// Makes room in a journal that takes no batch, so that it could not be put on record first that anything goes: purges
// it up to where a snapshot reaches, and leaves it to whoever leads to say behind that from which batch on the record
// can be read (docs/adr/0012-a-journal-that-loses-records.md).
//
// Why nothing is lost that was accepted, whoever leads:
// - What goes is the beginning of the one line of batches, up to a record that a snapshot reaches; that one was folded
//   from records that were committed, and was read back in whole just now.
// - It holds every batch of ours up to that record, and no other's. One of a line whose end was lost may reach further,
//   by records in which later batches stand now, or another's line.
// - Records behind it stay, and always the newest batch, behind which everybody appends, with which standbys compare
//   and which its leader reads back. Where the journal ends before the snapshot, it lost its end, and nothing goes.
// - Where an older snapshot stands, only what that one reaches goes first, as ever: two stand for it then. Otherwise
//   the newest alone stands for what goes. Either way only what a snapshot reaches that the server has synced
//   (synced-snapshots.ts).
// - However late the purge arrives, a later leader's records are behind: the first batch that stays is looked at right
//   before, for where the journal lost its end meanwhile, another stands there.

import type { BatchPlaces } from "../../journal/batch-places.ts";
import type { Journal } from "../../journal/journal.ts";
import type { ReadSnapshot } from "../../journal/snapshot/found.ts";
import { isOfLine } from "../../journal/snapshot/left-out.ts";
import { type PlacedManifest, readManifests, type SnapshotLog } from "../../journal/snapshot/manifests.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { isStanding } from "../../journal/standing-batch.ts";
import type { SyncedSnapshots } from "./synced-snapshots.ts";

export interface RoomMakerDeps {
  readonly journal: Journal;
  readonly snapshots: SnapshotStore;
  readonly places: BatchPlaces;
  readonly synced: Pick<SyncedSnapshots, "isSynced" | "stands">;
  readonly logger: SnapshotLog;
}

export class RoomMaker {
  readonly #deps: RoomMakerDeps;

  constructor(deps: RoomMakerDeps) {
    this.#deps = deps;
  }

  /** Whether a snapshot stands for all up to a record. */
  stands(read: ReadSnapshot | undefined, seq: number): boolean {
    return read !== undefined && read.seq >= seq && isOfLine(read, this.#deps.places);
  }

  /** Purges what may go, if anything. @param read in whole, just now
   *  @param keptSeq the newest batch's record, which whoever leads reads back
   *  @returns the record before which all is gone, where something went
   *  @throws UnreachableError, JournalDamagedError */
  async purge(
    read: ReadSnapshot | undefined,
    { keptSeq }: { readonly keptSeq: number },
  ): Promise<number | undefined> {
    const { journal, places } = this.#deps;
    if (read === undefined) return undefined;
    const { firstSeq, lastSeq } = await journal.position();
    const reach = await this.#reach(read, firstSeq);
    const endSeq = Math.min(reach + 1, keptSeq, lastSeq);
    if (lastSeq < read.seq || endSeq <= firstSeq) return undefined;
    const keptIdx = places.firstFrom(endSeq);
    if (keptIdx === undefined || !(await isStanding(keptIdx, places, journal))) return undefined;
    await journal.purgeBelow(endSeq);
    return endSeq;
  }

  /** The last record that may go; 0 where none may. */
  async #reach(read: ReadSnapshot, firstSeq: number): Promise<number> {
    const { snapshots, places, synced, logger } = this.#deps;
    const placed = await readManifests(snapshots, logger);
    const stands = placed.find(({ place, hash }) => place === read.place && hash === read.hash);
    if (stands === undefined || !isOfLine(read, places)) return 0; // somebody has just made another, or of another line
    const { journal } = stands.manifest.position;
    const older = placed.filter(({ manifest: { position } }) => {
      const isBetween = position.seq < read.seq && position.seq >= firstSeq;
      const { idx, seq, hash: batchHash } = position;
      return position.journal === journal && isBetween && isOfLine({ idx, seq, batchHash }, places);
    });
    synced.stands(read);
    const reach = (some: readonly PlacedManifest[]) =>
      Math.max(0, ...some.map(({ manifest }) => manifest.position.seq));
    const syncedReach = reach([stands, ...older].filter((each) => synced.isSynced(each)));
    return Math.min(older.length > 0 ? reach(older) : read.seq, syncedReach);
  }
}
