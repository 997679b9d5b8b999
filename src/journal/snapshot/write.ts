// Writes a snapshot: the state's lines in chunks, each read back and compared before the next is written, and the
// manifest last. A snapshot that was begun and not ended is no snapshot: nobody reads chunks without a manifest, and
// they go when older snapshots go (manifests.ts).

import { assert } from "../../assert.ts";
import type { Clock } from "../../clock.ts";
import { encodeState } from "../../core/snapshot/encode.ts";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import { hashOf } from "../batch.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { ChunkCutter } from "./chunks.ts";
import { type ChunkRef, encodeManifest, type Manifest } from "./manifest.ts";

/** Writes what was folded, whose state must not change meanwhile, in slices of `limits.snapshotSliceMs`. Resolves when
 *  it is durable and was read back.
 *  @param instead asked when only the manifest is missing: one that stands meanwhile and makes this one needless
 *  @returns the manifest that stands now
 *  @throws UnreachableError; JournalDamagedError when the store does not give back what was put;
 *    WaggleError WAGGLE_JOURNAL_FULL */
export async function writeSnapshot(
  folded: Folded,
  deps: { readonly store: SnapshotStore; readonly clock: Clock },
  instead: () => Promise<Manifest | undefined> = async () => undefined,
): Promise<Manifest> {
  const { state, position, lastEventType, places, deadRecords } = folded;
  assert(position.idx >= 1 && state.idx === position.idx, "a snapshot is of batches that were applied");
  // Beats may be applied while the lines are written: they change nothing but these.
  const head = { position, at: state.at, lastEventType, runs: places.runs, deadRecords };
  const chunks = await writeChunks(folded, deps);
  const other = await instead();
  if (other !== undefined) return other;
  const manifest = { ...head, chunks };
  const bytes = encodeManifest(manifest);
  const place = await deps.store.putManifest(bytes);
  const stored = (await deps.store.manifests()).find((each) => each.place === place);
  if (stored === undefined || Buffer.compare(stored.bytes, bytes) !== 0)
    throw notGivenBack("manifest", place);
  return manifest;
}

async function writeChunks(
  { state }: Folded,
  { store, clock }: { readonly store: SnapshotStore; readonly clock: Clock },
): Promise<readonly ChunkRef[]> {
  const slices = new Slices(clock, limits.snapshotSliceMs);
  const cutter = new ChunkCutter();
  const chunks: ChunkRef[] = [];
  for (const line of encodeState(state)) {
    for (const chunk of cutter.add(line)) chunks.push(await writeChunk(chunk, store));
    if (slices.isOver) await slices.pause();
  }
  for (const chunk of cutter.end()) chunks.push(await writeChunk(chunk, store));
  return chunks;
}

async function writeChunk(chunk: Uint8Array, store: SnapshotStore): Promise<ChunkRef> {
  const hash = hashOf(chunk);
  const place = await store.putChunk(chunk);
  const stored = await store.chunk(place);
  if (stored === undefined || hashOf(stored) !== hash) throw notGivenBack("chunk", place);
  return [place, chunk.length, hash];
}

function notGivenBack(what: string, place: number): JournalDamagedError {
  return new JournalDamagedError(
    `the storage of snapshots does not give back the ${what} that was put at place ${place}: see to the disk`,
  );
}
