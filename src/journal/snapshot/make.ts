// A snapshot made of the journal: begins at the newest one, folds the tail, writes the next. Touches nothing of the leader
// that asked for it, so it runs in a thread of its own (coordinator/snapshot-thread.ts), or beside the leader in a
// simulation.

import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import type { Manifest } from "./manifest.ts";
import { readManifests, removeOldSnapshots } from "./manifests.ts";
import { type RestoreDeps, readToEnd, restore } from "./restore.ts";
import { writeSnapshot } from "./write.ts";

/** Folds up to the record `untilSeq`, which must be of a committed batch, or dead, and writes the snapshot.
 *  @returns the newest manifest then: of this snapshot, or of another one that reaches as far, where somebody else was
 *    quicker
 *  @throws UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL */
export async function makeSnapshot(
  deps: RestoreDeps & { readonly snapshots: SnapshotStore },
  untilSeq: number,
): Promise<Manifest> {
  const { replay } = await restore(deps);
  await readToEnd(deps, replay.position.seq, (record) => replay.take(record), untilSeq);
  const made = await writeUnlessThere(replay, deps);
  await removeOldSnapshots(deps.snapshots, made.position.journal, deps.logger);
  return made;
}

async function writeUnlessThere(
  folded: Folded,
  { snapshots, clock, logger }: RestoreDeps & { readonly snapshots: SnapshotStore },
): Promise<Manifest> {
  const { idx } = folded.position;
  const reachingSoFar = async () => {
    const [furthest] = await readManifests(snapshots, logger);
    return furthest !== undefined && furthest.manifest.position.idx >= idx ? furthest.manifest : undefined;
  };
  const other = await reachingSoFar();
  return other ?? (await writeSnapshot(folded, { store: snapshots, clock }, reachingSoFar));
}
