// A snapshot from a state that somebody still has in memory, where the journal cannot give it any more: a hole, or an end
// that was lost and that nobody holds.
//
// The contract, for whoever leads or stands by and calls it:
// - Before: no batch is in flight, `folded.state` is the fold up to `folded.position.idx`, and every batch up to it was
//   committed. Freeze: no turn but beats, no answer until it resolves, for the state is written while others use the loop
//   (in slices of `limits.snapshotSliceMs`, so that connections live).
// - `folded.position.seq` is the record behind which the journal goes on: for a hole its last record; for a lost end the
//   last record that is left, for that is where the next batch will stand. `folded.places` may know places that are lost
//   now; the audit's beginning (`AuditTrimmed`) says which are not to be read.
// - After: whoever reads the journal anew begins here. Append the next batch at `position.seq + 1`, with `hash` of the
//   position as its `prev`. Snapshots are removed that are older than one whose chunks are all there, which stays for where
//   the journal is whole behind it, or its storage is restored; should this one be damaged and that not help, reading halts
//   (restore.ts) and loses nothing silently.
// - A failure leaves the state as it was: call again.

import type { Clock } from "../../clock.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import type { Manifest } from "./manifest.ts";
import { readManifests, removeBelow, type SnapshotLog } from "./manifests.ts";
import { isStored } from "./restore.ts";
import { writeSnapshot } from "./write.ts";

/** Resolves when the snapshot is durable and was read back.
 *  @throws UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL */
export async function snapshotNow(
  folded: Folded,
  deps: { readonly store: SnapshotStore; readonly clock: Clock; readonly logger: SnapshotLog },
): Promise<Manifest> {
  const manifest = await writeSnapshot(folded, deps);
  const older = await olderStored(manifest, deps);
  if (older !== undefined) await removeBelow(deps.store, [older, manifest]);
  return manifest;
}

/** The one before it that reaches furthest and is there in whole, if any. */
async function olderStored(
  made: Manifest,
  { store, logger }: { readonly store: SnapshotStore; readonly logger: SnapshotLog },
): Promise<Manifest | undefined> {
  const [newest] = made.chunks;
  for (const { manifest } of await readManifests(store, logger)) {
    const isOther =
      manifest.position.journal === made.position.journal && manifest.chunks[0]?.[0] !== newest?.[0];
    if (isOther && (await isStored(manifest, store))) return manifest;
  }
  return undefined;
}
