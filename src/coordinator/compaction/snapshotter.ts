// The port of who makes snapshots for a leader, and looks whether they can be read: off its loop, from what is stored
// alone. In production a thread of the process (thread-snapshotter.ts); for tests and simulations the same functions in
// this thread.

import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import { makeSnapshot, type SnapshotMade, type SnapshotOrder } from "../../journal/snapshot/make.ts";
import { findSnapshots, type RestoreDeps } from "../../journal/snapshot/restore.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";

/** One thing at a time. Aborted, it ends as soon as it can, with an error; what it wrote until then is no snapshot. */
export interface Snapshotter {
  /** @throws UnreachableError, SnapshotsLostError, RestartLostError, JournalDamagedError; WaggleError
   *  WAGGLE_JOURNAL_FULL, WAGGLE_INVARIANT */
  make(order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotMade>;

  /** Which snapshot a restart would begin at. @param lastSeq of the journal, where its storage does not know
   *  @throws UnreachableError, SnapshotsLostError, JournalDamagedError; WaggleError WAGGLE_INVARIANT */
  find(lastSeq: number, signal: AbortSignal): Promise<FoundSnapshots>;
}

/** In this thread, in slices. Not stopped by its signal: it ends when it is done. */
export function snapshotterHere(deps: RestoreDeps & { readonly snapshots: SnapshotStore }): Snapshotter {
  return { make: (order) => makeSnapshot(deps, order), find: () => findSnapshots(deps) };
}
