// The port of who makes snapshots for a leader: off its loop, from the journal alone. In production a thread of the process
// (thread-snapshotter.ts); for tests and simulations the same function in this thread.

import { makeSnapshot, type SnapshotMade, type SnapshotOrder } from "../journal/snapshot/make.ts";
import type { RestoreDeps } from "../journal/snapshot/restore.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";

export interface Snapshotter {
  /** One at a time. Aborted, it ends as soon as it can, with an error; what it wrote until then is no snapshot.
   *  @throws UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL, WAGGLE_INVARIANT */
  make(order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotMade>;
}

/** In this thread, in slices. Not stopped by its signal: it ends when it is done. */
export function snapshotterHere(deps: RestoreDeps & { readonly snapshots: SnapshotStore }): Snapshotter {
  return { make: (order) => makeSnapshot(deps, order) };
}
