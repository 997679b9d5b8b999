// Room for a snapshot that is about to be written. A bounded store holds three as a rule; where it does not hold
// another, the older ones go first, but never the one that was just read in whole: that one and the journal behind it
// are all that a restart needs. What would not fit even then is not begun: its parts would take the next one's room,
// and nothing removes them before a later snapshot is whole.

import type { Clock } from "../../clock.ts";
import { encodeState } from "../../core/snapshot/encode.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import { snapshotsFullError } from "../journal-errors.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { type Manifest, sizeOf } from "./manifest.ts";
import { removeBelow } from "./manifests.ts";

/** Of a chunk, beside what it holds: what a stream adds to it, and its line in the manifest. */
const CHUNK_OVERHEAD_BYTES = 512;
/** Of a run of places in the manifest. */
const RUN_BYTES = 48;

/** What a snapshot is made from. */
export interface Older {
  /** The snapshot that was read in whole; undefined where there is none. */
  readonly older: Manifest | undefined;
  /** A power failure leaves it: those before it may go. */
  readonly isOlderSynced: boolean;
}

/** @throws UnreachableError; WaggleError WAGGLE_JOURNAL_FULL */
export async function requireRoom(
  folded: Folded,
  { older, isOlderSynced }: Older,
  { store, clock }: { readonly store: SnapshotStore; readonly clock: Clock },
): Promise<void> {
  const before = await store.usage();
  const free = freeOf(before);
  if (free >= Math.max(limits.snapshotRoomBytes, older === undefined ? 0 : 2 * sizeOf(older))) return;
  const needed = await measure(folded, clock);
  if (needed <= free) return;
  if (older !== undefined && isOlderSynced) await removeBelow(store, [older]);
  const after = await store.usage();
  if (needed <= freeOf(after)) return;
  const what = `it takes ${needed} bytes, and of ${after.bytesMax} there are ${after.bytes} taken by the one before it`;
  throw snapshotsFullError(what, after.remedy);
}

function freeOf({
  bytes,
  bytesMax = Number.POSITIVE_INFINITY,
}: {
  bytes: number;
  bytesMax: number | undefined;
}): number {
  return bytesMax - bytes;
}

/** What the snapshot takes of its store, a little more rather than less. In slices. */
async function measure({ state, places }: Folded, clock: Clock): Promise<number> {
  const slices = new Slices(clock, limits.snapshotSliceMs);
  let bytes = 0;
  for (const line of encodeState(state)) {
    bytes += Buffer.byteLength(line) + 1;
    if (slices.isOver) await slices.pause();
  }
  const parts = Math.ceil(bytes / limits.snapshotChunkBytesMax) + 1;
  return bytes + parts * CHUNK_OVERHEAD_BYTES + places.runs.length * RUN_BYTES;
}
