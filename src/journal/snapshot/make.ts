// A snapshot made of the journal: begins at the newest one, folds the tail, writes the next, and finds how much of the
// journal may go then. Touches nothing of the leader that asked for it, so it runs in a thread of its own
// (coordinator/compaction/snapshot-thread.ts), or beside the leader in tests and simulations.

import { JournalDamagedError } from "../../errors.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { JournalRecord } from "../journal.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { type FoundSnapshots, withFault } from "./found.ts";
import { EndLostError, RestartLostError, SnapshotsLostError } from "./losses.ts";
import { type Manifest, nameOf, type SnapshotName, sizeOf } from "./manifest.ts";
import { readManifests, removeBelow } from "./manifests.ts";
import { faultIn } from "./read.ts";
import { type RestoreDeps, type Restored, restoreAndRead } from "./restore.ts";
import { type Older, requireRoom } from "./room.ts";
import { type Trim, type TrimOrder, trimOf } from "./trim.ts";
import { writeSnapshot } from "./write.ts";

export interface SnapshotOrder extends TrimOrder {
  /** The last record to fold: of a committed batch, or dead. */
  readonly untilSeq: number;
  /** Hashes of the snapshots that a power failure leaves. */
  readonly synced: readonly string[];
}

/** What a snapshot is, for people and for whoever decides when the next is due. */
export interface SnapshotFacts {
  readonly idx: BatchIndex;
  readonly at: Instant;
  /** Of the state that it holds. */
  readonly bytes: number;
}

export interface SnapshotMade extends SnapshotFacts {
  /** What may go from the journal; absent when nothing may. */
  readonly trim?: Trim;
  /** Of those that were there before. */
  readonly found: FoundSnapshots;
  readonly name: SnapshotName;
}

type MakeDeps = RestoreDeps & { readonly snapshots: SnapshotStore };

export function factsOf(manifest: Manifest): SnapshotFacts {
  return { idx: manifest.position.idx, at: manifest.at, bytes: sizeOf(manifest) };
}

/** Keeps that one and the one that was read for it, and no other older than these (which go before it is written where
 *  it does not fit otherwise, room.ts): one that cannot be read neither stands for what was purged nor takes the place
 *  of one that can. While a power failure could take the one that was read, the older ones stay with it; and where it
 *  rotted while this one was written, which may take long, nothing goes.
 *  @returns the newest snapshot then: this one, or another that reaches as far, where somebody else was quicker
 *  @throws RestartLostError, UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL */
export async function makeSnapshot(deps: MakeDeps, order: SnapshotOrder): Promise<SnapshotMade> {
  const readMonotonicMs = deps.clock.monotonicMs();
  const { replay, manifest: older, found } = await readAll(deps, order);
  const isOlderSynced = order.synced.some((hash) => hash === found.read?.hash);
  const made = await writeUnlessThere(replay, { older, isOlderSynced, found }, deps);
  const facts = { ...factsOf(made), found, name: nameOf(made) };
  if (older === undefined || older.position.idx >= made.position.idx) return facts;
  const isReadLately = deps.clock.monotonicMs() - readMonotonicMs <= limits.snapshotReadMs;
  const fault = isReadLately ? undefined : await faultIn(older, deps.snapshots);
  if (fault !== undefined) return { ...facts, found: withFault(found, older, fault) };
  if (isOlderSynced) await removeBelow(deps.snapshots, [older, made]);
  const trim = await trimOf(deps.journal, replay.places, older, order);
  return trim === undefined ? facts : { ...facts, trim };
}

/** @throws RestartLostError, SnapshotsLostError, EndLostError, UnreachableError */
async function readAll(deps: MakeDeps, { untilSeq }: SnapshotOrder): Promise<Restored> {
  try {
    const fold =
      ({ replay }: Restored) =>
      (record: JournalRecord) =>
        void replay.take(record);
    return await restoreAndRead(deps, fold, untilSeq);
  } catch (cause) {
    const isEnd = cause instanceof EndLostError || cause instanceof SnapshotsLostError;
    if (isEnd || !(cause instanceof JournalDamagedError)) throw cause;
    throw new RestartLostError(cause.message, { cause });
  }
}

async function writeUnlessThere(
  folded: Folded,
  { older, isOlderSynced, found }: Older & { readonly found: FoundSnapshots },
  { snapshots, clock, logger }: MakeDeps,
): Promise<Manifest> {
  const { idx } = folded.position;
  const reachingSoFar = async () => {
    const manifests = await readManifests(snapshots, logger);
    const furthest = manifests.find(({ place }) => !found.unreadable.some((each) => each.place === place));
    return furthest !== undefined && furthest.manifest.position.idx >= idx ? furthest.manifest : undefined;
  };
  const other = await reachingSoFar();
  if (other !== undefined) return other;
  const deps = { store: snapshots, clock };
  await requireRoom(folded, { older, isOlderSynced }, deps);
  return await writeSnapshot(folded, deps, reachingSoFar);
}
