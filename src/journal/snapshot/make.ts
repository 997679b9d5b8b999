// A snapshot made of the journal: begins at the newest one, folds the tail, writes the next, and finds how much of the
// journal may go then. Touches nothing of the leader that asked for it, so it runs in a thread of its own
// (coordinator/snapshot-thread.ts), or beside the leader in tests and simulations.

import type { BatchIndex, Instant } from "../../ids.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { type Manifest, sizeOf } from "./manifest.ts";
import { readManifests, removeOldSnapshots } from "./manifests.ts";
import { type RestoreDeps, readToEnd, restore } from "./restore.ts";
import { type Trim, type TrimOrder, trimOf } from "./trim.ts";
import { writeSnapshot } from "./write.ts";

export interface SnapshotOrder extends TrimOrder {
  /** The last record to fold: of a committed batch, or dead. */
  readonly untilSeq: number;
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
}

type MakeDeps = RestoreDeps & { readonly snapshots: SnapshotStore };

export function factsOf(manifest: Manifest): SnapshotFacts {
  return { idx: manifest.position.idx, at: manifest.at, bytes: sizeOf(manifest) };
}

/** @returns the newest snapshot then: this one, or another that reaches as far, where somebody else was quicker
 *  @throws UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL */
export async function makeSnapshot(deps: MakeDeps, order: SnapshotOrder): Promise<SnapshotMade> {
  const { replay } = await restore(deps);
  await readToEnd(deps, replay.position.seq, (record) => replay.take(record), order.untilSeq);
  const made = await writeUnlessThere(replay, deps);
  const { snapshots, logger } = deps;
  const [, older] = await removeOldSnapshots(snapshots, made.position.journal, logger);
  const trim = older && (await trimOf(deps.journal, replay.places, older, order));
  return { ...factsOf(made), ...(trim === undefined ? {} : { trim }) };
}

async function writeUnlessThere(folded: Folded, { snapshots, clock, logger }: MakeDeps): Promise<Manifest> {
  const { idx } = folded.position;
  const reachingSoFar = async () => {
    const [furthest] = await readManifests(snapshots, logger);
    return furthest !== undefined && furthest.manifest.position.idx >= idx ? furthest.manifest : undefined;
  };
  const other = await reachingSoFar();
  return other ?? (await writeSnapshot(folded, { store: snapshots, clock }, reachingSoFar));
}
