// Reads a snapshot that write.ts wrote: its chunks, each held against its hash, and of their lines the state. Which one
// to read, and whether the journal goes on behind it, is not asked here (restore.ts). Either all of it was read, or
// nothing: a chunk that is missing, or not as it was written, is JournalDamagedError.

import type { Clock } from "../../clock.ts";
import { StateDecoder } from "../../core/snapshot/decode.ts";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import type { SwarmState } from "../../state/state.ts";
import { hashOf } from "../batch.ts";
import { BatchPlaces } from "../batch-places.ts";
import { Replay } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { LineReader } from "./chunks.ts";
import type { ChunkRef, Manifest } from "./manifest.ts";

interface ReadDeps {
  readonly snapshots: SnapshotStore;
  readonly clock: Clock;
}

/** Reads in slices of `limits.snapshotSliceMs`.
 *  @returns what goes on at the record behind the manifest's `position.seq`
 *  @throws UnreachableError, JournalDamagedError */
export async function readSnapshot(manifest: Manifest, { snapshots, clock }: ReadDeps): Promise<Replay> {
  const { position, at, lastEventType, runs, deadRecords, alienRecords, chunks } = manifest;
  const slices = new Slices(clock, limits.snapshotSliceMs);
  const decoder = new StateDecoder();
  const lines = new LineReader();
  for await (const chunk of readChunks(chunks, snapshots)) {
    for (const line of lines.take(chunk)) {
      decoder.take(line);
      if (slices.isOver) await slices.pause();
    }
  }
  lines.end();
  const state = await built(decoder.end(), slices);
  if (state.idx !== position.idx || state.term !== position.term || state.at !== at)
    throw new JournalDamagedError(
      `the snapshot of batch ${position.idx} holds the state of batch ${state.idx}`,
    );
  const places = new BatchPlaces(runs);
  return new Replay({ state, position, lastEventType, places, deadRecords, alienRecords });
}

async function built(building: Generator<undefined, SwarmState>, slices: Slices): Promise<SwarmState> {
  for (;;) {
    const step = building.next();
    if (step.done) return step.value;
    if (slices.isOver) await slices.pause();
  }
}

/** The first of the chunks' faults; undefined where all are there as they were written. Of their lines nothing is read.
 *  @throws UnreachableError */
export async function faultIn(
  { chunks }: Manifest,
  snapshots: SnapshotStore,
): Promise<JournalDamagedError | undefined> {
  try {
    for await (const _ of readChunks(chunks, snapshots));
    return undefined;
  } catch (cause) {
    if (cause instanceof JournalDamagedError) return cause;
    throw cause;
  }
}

/** In order, some asked for ahead: on their way while those before them are read. */
async function* readChunks(refs: readonly ChunkRef[], snapshots: SnapshotStore): AsyncGenerator<Uint8Array> {
  const ahead: Promise<Uint8Array>[] = [];
  for (const ref of refs) {
    const chunk = readChunk(ref, snapshots);
    chunk.catch(() => undefined); // thrown when its turn comes, or not at all when one before it failed
    if (ahead.push(chunk) > limits.snapshotChunksAhead) yield await (ahead.shift() as Promise<Uint8Array>);
  }
  for (const chunk of ahead) yield await chunk;
}

async function readChunk([place, size, hash]: ChunkRef, snapshots: SnapshotStore): Promise<Uint8Array> {
  const bytes = await snapshots.chunk(place);
  if (bytes === undefined) throw new JournalDamagedError(`the chunk at place ${place} is missing`);
  if (bytes.length !== size || hashOf(bytes) !== hash)
    throw new JournalDamagedError(`the chunk at place ${place} is not as it was written`);
  return bytes;
}
