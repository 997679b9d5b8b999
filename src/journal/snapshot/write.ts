// Writes a snapshot: the state's lines in chunks, each read back and compared before the next is written, and the
// manifest last. A snapshot that was begun and not ended is no snapshot: nobody reads chunks without a manifest, and
// they go when older snapshots go (manifests.ts). What was put and is not found is looked for again before it counts as
// lost (look.ts).

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
import { lookFor } from "./look.ts";
import { type ChunkRef, encodeManifest, type Manifest } from "./manifest.ts";

/** The store does not give back what was put. */
export class NotGivenBackError extends JournalDamagedError {
  /** Where it was put. */
  readonly place: number;

  constructor(what: "chunk" | "manifest", place: number) {
    super(
      `the storage of snapshots does not give back the ${what} that was put at place ${place}: see to the disk`,
    );
    this.place = place;
  }
}

interface WriteDeps {
  readonly store: SnapshotStore;
  readonly clock: Clock;
}

/** Writes what was folded, whose state must not change meanwhile, in slices of `limits.snapshotSliceMs`. Resolves when
 *  it is durable and was read back.
 *  @param instead asked when only the manifest is missing: one that stands meanwhile and makes this one needless
 *  @returns the manifest that stands now
 *  @throws UnreachableError, NotGivenBackError; WaggleError WAGGLE_JOURNAL_FULL */
export async function writeSnapshot(
  folded: Folded,
  deps: WriteDeps,
  instead: () => Promise<Manifest | undefined> = async () => undefined,
): Promise<Manifest> {
  const { state, position, lastEventType, places, deadRecords, alienRecords } = folded;
  assert(position.idx >= 1 && state.idx === position.idx, "a snapshot is of batches that were applied");
  // Beats may be applied while the lines are written: they change nothing but these.
  const head = { position, at: state.at, lastEventType, runs: places.runs, deadRecords, alienRecords };
  const chunks = await writeChunks(folded, deps);
  const other = await instead();
  if (other !== undefined) return other;
  const manifest = { ...head, chunks };
  const bytes = encodeManifest(manifest);
  const place = await deps.store.putManifest(bytes);
  const look = async () => (await deps.store.manifests()).find((each) => each.place === place);
  const stored = await lookFor(look, deps.clock);
  if (stored === undefined || Buffer.compare(stored.bytes, bytes) !== 0)
    throw new NotGivenBackError("manifest", place);
  await requireKept(chunks, deps);
  return manifest;
}

/** Whoever saved meanwhile may have removed what stood before their own while there was no manifest that names these;
 *  from below, so that the first one tells. @throws UnreachableError, NotGivenBackError */
async function requireKept([first]: readonly ChunkRef[], { store, clock }: WriteDeps): Promise<void> {
  if (first === undefined) return;
  const [place] = first;
  if ((await lookFor(() => store.chunk(place), clock)) === undefined)
    throw new NotGivenBackError("chunk", place);
}

async function writeChunks({ state }: Folded, deps: WriteDeps): Promise<readonly ChunkRef[]> {
  const slices = new Slices(deps.clock, limits.snapshotSliceMs);
  const cutter = new ChunkCutter();
  const chunks: ChunkRef[] = [];
  for (const line of encodeState(state)) {
    for (const chunk of cutter.add(line)) chunks.push(await writeChunk(chunk, deps));
    if (slices.isOver) await slices.pause();
  }
  for (const chunk of cutter.end()) chunks.push(await writeChunk(chunk, deps));
  return chunks;
}

async function writeChunk(chunk: Uint8Array, { store, clock }: WriteDeps): Promise<ChunkRef> {
  const hash = hashOf(chunk);
  const place = await store.putChunk(chunk);
  const stored = await lookFor(() => store.chunk(place), clock);
  if (stored === undefined || hashOf(stored) !== hash) throw new NotGivenBackError("chunk", place);
  return [place, chunk.length, hash];
}
