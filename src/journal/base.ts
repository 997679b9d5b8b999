// A base: the state after some batch, stored at the beginning of a segment. The chunks hold the lines of the state's
// snapshot (core/snapshot). The manifest lists the chunks with their hashes and is written last. A base is read whole
// or not at all: a missing or changed chunk throws JournalDamagedError.

import { assert } from "../assert.ts";
import type { Clock } from "../clock.ts";
import { StateDecoder } from "../core/snapshot/decode.ts";
import { encodeState } from "../core/snapshot/encode.ts";
import { snapshotVersion } from "../core/snapshot/swarm.ts";
import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Slices } from "../slices.ts";
import type { SwarmState } from "../state/state.ts";
import { ChunkCutter, LineReader } from "./chunks.ts";
import type { SegmentReader } from "./journal.ts";
import {
  type ChainTail,
  type Chunk,
  type ChunkRef,
  decodeRecord,
  encodeRecord,
  hashOf,
  type LogRecord,
  type Manifest,
  type Opened,
} from "./records.ts";
import { type LiveSegment, Replay } from "./replay.ts";

/** A base, written and read back. */
export type BaseRef = NonNullable<Opened["base"]>;

export interface BaseWriter {
  /** Id of the session that claimed the segment. */
  readonly session: string;
  readonly clock: Clock;
  /** Appends a record to the segment. @returns the record's position; throws once the writer has lost the segment */
  readonly put: (bytes: Uint8Array) => Promise<number>;
}

/** Writes the state in slices of `limits.baseSliceMs`. The state must not change meanwhile.
 *  @returns the manifest's position, hash and batch. @throws the errors of `put` */
export async function writeBase(
  { state, tail }: { readonly state: SwarmState; readonly tail: ChainTail },
  { session, clock, put }: BaseWriter,
): Promise<BaseRef> {
  assert(tail.idx >= 1 && state.idx === tail.idx, "a base is of batches that were applied");
  const slices = new Slices(clock, limits.baseSliceMs);
  const cutter = new ChunkCutter();
  const chunks: ChunkRef[] = [];
  const write = async (bytes: Uint8Array) => {
    const position = await put(encodeRecord({ kind: "chunk", session, bytes }));
    chunks.push([position, bytes.length, hashOf(bytes)]);
  };
  for (const line of encodeState(state)) {
    for (const chunk of cutter.add(line)) await write(chunk);
    if (slices.isOver) await slices.pause();
  }
  for (const chunk of cutter.end()) await write(chunk);
  const manifest = encodeRecord({
    kind: "manifest",
    session,
    version: snapshotVersion,
    at: state.at,
    tail,
    chunks,
  });
  return { position: await put(manifest), hash: hashOf(manifest), idx: tail.idx };
}

/** Reads the base of a live segment. @returns a replay, ready for the first record after the manifest
 *  @throws UnreachableError, JournalDamagedError */
export async function readBase(segment: SegmentReader, live: LiveSegment, clock: Clock): Promise<Replay> {
  const { base } = live.opened;
  assert(base !== undefined, "a base is read where there is one");
  const manifest = await readManifest(segment, base);
  const slices = new Slices(clock, limits.baseSliceMs);
  const decoder = new StateDecoder();
  const lines = new LineReader();
  for await (const { bytes } of readChunks(segment, manifest)) {
    await slices.run(decoder.take(lines.take(bytes)));
  }
  lines.end();
  const state = await slices.run(decoder.end());
  const { tail, at } = manifest;
  if (state.idx !== tail.idx || state.term !== tail.term || state.at !== at)
    throw new JournalDamagedError(
      `the base of segment ${segment.number} holds the state of batch ${state.idx}, and its manifest says batch ${tail.idx}`,
    );
  const replay = new Replay({ state, tail });
  replay.recent.add(tail.idx, tail.hash);
  replay.enter(live, base.position);
  return replay;
}

/** Throws unless the whole base is readable and unchanged. @throws UnreachableError, JournalDamagedError */
export async function verifyBase(segment: SegmentReader, base: BaseRef): Promise<void> {
  const manifest = await readManifest(segment, base);
  for await (const _ of readChunks(segment, manifest));
}

/** The lines of the state's snapshot in a base, without decoding them. @throws UnreachableError, JournalDamagedError */
export async function* baseLines(segment: SegmentReader, base: BaseRef): AsyncGenerator<readonly string[]> {
  const lines = new LineReader();
  for await (const { bytes } of readChunks(segment, await readManifest(segment, base)))
    yield lines.take(bytes);
  lines.end();
}

/** @throws UnreachableError, JournalDamagedError */
export async function readManifest(segment: SegmentReader, { position, hash }: BaseRef): Promise<Manifest> {
  const found = await segment.read(position);
  const record = found === undefined ? undefined : decodeRecord(found.bytes);
  if (found === undefined || record?.kind !== "manifest" || hashOf(found.bytes) !== hash)
    throw damaged(segment, position, "the manifest of its base");
  if (record.version !== snapshotVersion)
    throw new JournalDamagedError(
      `the base of segment ${segment.number} is of version ${record.version}, which another waggle wrote; this one reads version ${snapshotVersion}`,
    );
  return record;
}

async function* readChunks(segment: SegmentReader, { chunks, session }: Manifest): AsyncGenerator<Chunk> {
  const [first] = chunks;
  const last = chunks.at(-1);
  if (first === undefined || last === undefined) return;
  let next = 0;
  for await (const { position, bytes } of segment.replay(first[0], { until: last[0] })) {
    const expected = chunks[next];
    if (expected === undefined) return;
    if (position < expected[0]) continue; // a foreign record between two chunks
    yield requireChunk(decodeRecord(bytes), expected, { segment, session });
    next += 1;
  }
  const missing = chunks[next];
  if (missing !== undefined) throw damaged(segment, missing[0], "a chunk of its base");
}

function requireChunk(
  record: LogRecord | undefined,
  [position, size, hash]: ChunkRef,
  { segment, session }: { readonly segment: SegmentReader; readonly session: string },
): Chunk {
  const isIt =
    record?.kind === "chunk" &&
    record.session === session &&
    record.bytes.length === size &&
    hashOf(record.bytes) === hash;
  if (!isIt) throw damaged(segment, position, "a chunk of its base");
  return record;
}

function damaged({ number }: SegmentReader, position: number, what: string): JournalDamagedError {
  return new JournalDamagedError(`segment ${number} lost ${what}, or it changed: record ${position}`);
}
