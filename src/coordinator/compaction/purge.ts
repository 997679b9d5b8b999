// Purges the journal of what the record says is gone, for the leader's compactor (compactor.ts).
//
// The rule: first it stands on the record that batches will be gone, then they go; and they go only while a snapshot
// reaches as far. A leader that takes over begins the purge anew that the one before did not end.
//
// Nobody purges by a snapshot that was not read in whole, by this coordinator when it started or by whoever made the
// next one for it, and lately: a manifest that can be read says nothing of its chunks, and a storage may give back what
// was just written and not what is read later. Where that was longer ago it is read again first. Only what stands
// before records that are lost goes by the snapshot that was saved for these. Nor by one that a power failure could
// take: until it is synced (synced-snapshots.ts) the purge waits, and more can be read than the record says.
//
// Nor where something else stands by now in the place of the first batch that stays: the journal lost its end, and what
// went on there stands where what was to go did.
//
// Not here: a journal that is full (room-maker.ts), and one that does not keep what it is given (purge-unkept.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { type BatchIndex, batchIndex } from "../../ids.ts";
import type { BatchPlaces } from "../../journal/batch-places.ts";
import type { Journal } from "../../journal/journal.ts";
import type { ReadSnapshot } from "../../journal/snapshot/found.ts";
import { isOfLine } from "../../journal/snapshot/left-out.ts";
import type { SnapshotName } from "../../journal/snapshot/manifest.ts";
import { readManifests } from "../../journal/snapshot/manifests.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { isStanding } from "../../journal/standing-batch.ts";
import { limits } from "../../limits.ts";
import type { EventOf } from "../../state/event.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import { RetryPause } from "./retry-pause.ts";
import type { SyncedSnapshots } from "./synced-snapshots.ts";

export interface PurgeDeps {
  readonly journal: Journal;
  readonly snapshots: SnapshotStore;
  readonly room: Pick<JournalRoom, "lookAgain">;
  readonly logger: Logger;
  readonly places: BatchPlaces;
  /** The snapshot that was read in whole when this was last looked for, if there was one. */
  readonly read: () => ReadSnapshot | undefined;
  /** When that was. */
  readonly readable: Pick<ReadableSnapshots, "foundMonotonicMs">;
  /** Has it looked for at the next look. */
  readonly askAgain: () => void;
  readonly synced: Pick<SyncedSnapshots, "isSynced">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Aborts when the term is over. */
  readonly signal: Pick<AbortSignal, "aborted">;
}

const replaced = "the first batch that is kept is not found where it stood";

export class Purge {
  readonly #deps: PurgeDeps;
  /** The first batch that is to be kept, while what stands before it is not purged yet. */
  #firstIdx: BatchIndex | undefined;
  /** What is purged leads nowhere, for the journal lost what stood behind it: the snapshot that was saved then
   *  stands for it, though nobody has read it in whole yet. */
  #isLoss = false;
  /** What was saved, where that is what stands. */
  #saved: SnapshotName | undefined;
  #isRunning = false;
  readonly #retry: RetryPause;

  /** @param auditFirstIdx from which batch on the journal is kept, by the record */
  constructor(deps: PurgeDeps, auditFirstIdx: BatchIndex) {
    this.#deps = deps;
    this.#retry = new RetryPause(deps.clock);
    this.#firstIdx = auditFirstIdx > 1 ? auditFirstIdx : undefined;
  }

  /** It stands on the record. */
  trimmed({ firstIdx, reason }: EventOf<"AuditTrimmed">): void {
    this.#firstIdx = firstIdx;
    this.#isLoss = reason === "hole" || reason === "tail-lost";
    this.look();
  }

  /** Of the leader's own state. */
  saved(snapshot: SnapshotName): void {
    this.#saved = snapshot;
  }

  /** Purges what is not purged yet, where it may. */
  look(): void {
    if (this.#firstIdx !== undefined) void this.#run(this.#firstIdx);
  }

  async #run(firstIdx: BatchIndex): Promise<void> {
    const { journal, snapshots, room, logger, places, askAgain, signal } = this.#deps;
    const seq = this.#keptFromSeq(firstIdx);
    const standing = seq === undefined ? undefined : this.#standingFor(firstIdx, seq);
    if (seq === undefined || standing === undefined) return; // the next that is made reads one, or it is synced by then
    if (this.#isRunning || !this.#retry.isOver) return;
    this.#isRunning = true;
    try {
      const { firstSeq } = await journal.position();
      if (firstSeq < seq && !this.#isReadLately) return askAgain();
      const placed = await readManifests(snapshots, logger);
      if (!placed.some(({ hash }) => hash === standing.hash))
        throw new Error("the snapshot that stands for what is purged is gone");
      if (firstSeq < seq && !(await isStanding(firstIdx, places, journal))) throw new Error(replaced);
      if (signal.aborted || this.#keptFromSeq(firstIdx) !== seq) return; // the journal lost its end meanwhile
      await journal.purgeBelow(seq);
      logger.info({ firstIdx }, "the journal was purged of what is no longer kept");
      if (this.#firstIdx === firstIdx) this.#firstIdx = undefined;
      this.#retry.reset();
      room.lookAgain();
    } catch (cause) {
      this.#retry.begin();
      logger.warn({ err: cause, firstIdx }, "the journal could not be purged: it is tried again");
    } finally {
      this.#isRunning = false;
    }
  }

  /** Dead records before the first batch that is kept stay with it: a snapshot of the batch before may go on at the
   *  first of them. Not where something was lost there. */
  #keptFromSeq(firstIdx: BatchIndex): number | undefined {
    const { places } = this.#deps;
    const seq = places.seqOf(firstIdx);
    const beforeSeq = this.#isLoss ? undefined : places.seqOf(batchIndex(firstIdx - 1));
    return seq === undefined || beforeSeq === undefined ? seq : beforeSeq + 1;
  }

  get #isReadLately(): boolean {
    const { clock, readable } = this.#deps;
    return clock.monotonicMs() - readable.foundMonotonicMs <= limits.snapshotReadMs;
  }

  /** One of an earlier batch may reach a later record: of a line whose end was lost, of which batches of the record
   *  are held by a later snapshot alone. Nobody goes on behind one while later batches stand up to its end, nor behind
   *  one of another line. */
  #standingFor(firstIdx: BatchIndex, seq: number): SnapshotName | undefined {
    const { places, read, synced } = this.#deps;
    const candidates = [read(), this.#isLoss ? this.#saved : undefined];
    const stands = (each: SnapshotName) =>
      each.idx >= firstIdx - 1 && each.seq >= seq - 1 && isOfLine(each, places);
    return candidates.find((each) => each !== undefined && stands(each) && synced.isSynced(each));
  }
}
