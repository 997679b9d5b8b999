// Where a reading of a journal begins: at the snapshot that reaches furthest and can be read, or at the first record.
//
// Authoritative is the journal. A snapshot only spares reading what led to it; and its manifest says that history up to
// its batch existed. So whoever began at an older snapshot, or at the start, must come through the batch of every
// manifest there is, but for those that are left out, at the record that it names, or history was lost and nobody goes
// on as if nothing had been: `Restored.requireWhole` after reading to the end.
//
// The journal decides which line of batches is the swarm's. A snapshot behind which it does not go on is of another:
// somebody saved an end that was lost, and others had gone on from before it. It is left out where an older one leads
// through the journal, or where the journal begins behind it and another leads there. Whoever only looks for them
// leaves it out by what stands right behind it.
//
// Failures. A chunk that is missing or not as it was written, a manifest that cannot be read: the older snapshot, said
// in the log. No snapshot, and a journal that no longer begins at its first record: JournalDamagedError. A journal
// without a record where there are snapshots, readable or not: JournalDamagedError, for somebody deleted it. A journal
// that ends before the newest snapshot goes on (`EndLostError`), or that is another one: JournalDamagedError, for what
// would be appended now would stand where the next reader does not look.

import type { Clock } from "../../clock.ts";
import { StateDecoder } from "../../core/snapshot/decode.ts";
import type { SwarmState } from "../../core/state.ts";
import { JournalDamagedError, MissingRecordsError } from "../../errors.ts";
import { batchIndex } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import { decodeBatch, hashOf } from "../batch.ts";
import { BatchPlaces } from "../batch-places.ts";
import type { JournalReader, JournalRecord } from "../journal.ts";
import { strayError } from "../journal-errors.ts";
import { type ChainPosition, type ChainTail, deathOf, type Folded, isBehindMore, Replay } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { LineReader } from "./chunks.ts";
import type { ChunkRef, Manifest, SnapshotName } from "./manifest.ts";
import { type PlacedManifest, readManifests, type SnapshotLog } from "./manifests.ts";

export interface RestoreDeps {
  readonly journal: JournalReader;
  /** Absent where there are none, and the journal is read from its first record. */
  readonly snapshots?: SnapshotStore;
  readonly clock: Clock;
  readonly logger: SnapshotLog;
}

/** What a reading found out of the snapshots that there are. Plain values, for threads copy them. */
export interface FoundSnapshots {
  /** The one that was read in whole. Undefined where the reading began at the first record. */
  readonly read: ReadSnapshot | undefined;
  /** Those that reach further and could not be read, the furthest first. */
  readonly unreadable: readonly UnreadableSnapshot[];
}

export interface ReadSnapshot extends SnapshotName {
  /** Of its manifest. */
  readonly place: number;
}

export interface UnreadableSnapshot {
  /** Of its manifest. */
  readonly place: number;
  /** A sentence without its full stop. */
  readonly why: string;
}

export interface Restored {
  /** Goes on at the record behind `position.seq`. */
  readonly replay: Replay;
  /** What was read, and where it begins; undefined when the reading begins at the first record. */
  readonly manifest: Manifest | undefined;
  readonly found: FoundSnapshots;
  /** To be asked when the journal was read to its end.
   *  @throws JournalDamagedError when the replay did not come through the batch of every manifest */
  requireWhole(): void;
}

/** Begins at the snapshot that reaches furthest of those behind which the journal goes on, and reads that.
 *  @param begin told what was folded so far, and again where an older one is taken; gives what folds each record behind
 *  it into that replay
 *  @param untilSeq by default, where the journal ends
 *  @throws UnreachableError, JournalDamagedError, and what folds them throws */
export async function restoreAndRead(
  deps: RestoreDeps,
  begin: (restored: Restored) => (record: JournalRecord) => void,
  untilSeq?: number,
): Promise<Restored> {
  const left = new Set<string>();
  let missing: unknown;
  for (;;) {
    const restored = await restore(deps, left).catch((cause) => {
      throw cause instanceof SnapshotsLostError && missing !== undefined ? missing : cause;
    });
    const { replay, found } = restored;
    await readToEnd(deps, replay.position.seq, begin(restored), untilSeq);
    if (replay.strayedAtSeq === undefined) return restored;
    missing ??= missingIn(restored, replay.strayedAtSeq);
    if (found.read === undefined) throw missing;
    left.add(found.read.hash);
  }
}

/** A snapshot that could not be read says more than the record that continues it. */
function missingIn({ requireWhole }: Restored, strayedAtSeq: number): unknown {
  try {
    requireWhole();
    return strayError(strayedAtSeq);
  } catch (cause) {
    return cause;
  }
}

/** Reads in slices of `limits.snapshotSliceMs`; of the journal only the record at which it goes on, and what stands
 *  right behind that.
 *  @param left hashes of the manifests of those behind which the journal does not go on
 *  @throws UnreachableError, JournalDamagedError */
export async function restore(
  { journal, snapshots, clock, logger }: RestoreDeps,
  left: ReadonlySet<string> = new Set(),
): Promise<Restored> {
  const placed = snapshots === undefined ? [] : await readManifests(snapshots, logger);
  const passedOver: Manifest[] = [];
  const unreadable: UnreadableSnapshot[] = [];
  for (const { place, hash, manifest } of placed) {
    if (left.has(hash) || (await isLeftOut(manifest, placed, journal))) {
      unreadable.push({ place, why: leftOut(manifest, logger) });
      continue;
    }
    const replay = snapshots && (await readOrPassOver(manifest, { snapshots, clock, logger }));
    if (replay instanceof Replay) {
      await requireContinued(journal, replay);
      const { idx, seq } = manifest.position;
      const found = { read: { place, hash, idx, seq }, unreadable };
      const others = passedOver.filter((other) => !isSameBatch(other, manifest));
      return { replay, manifest, found, requireWhole: () => requireWhole(replay, others) };
    }
    passedOver.push(manifest);
    unreadable.push({ place, why: whyUnreadable(manifest, `${replay}`) });
  }
  await requireBeginning(journal, snapshots);
  const replay = new Replay();
  const found = { read: undefined, unreadable };
  return { replay, manifest: undefined, found, requireWhole: () => requireWhole(replay, passedOver) };
}

/** Which of them a restart would begin at: the furthest whose chunks are all there as they were written, and behind
 *  which the journal goes on. Of their lines nothing is read, and of the journal what stands right behind them.
 *  @throws SnapshotsLostError where a restart would find nothing that leads to the journal's beginning;
 *  JournalDamagedError, UnreachableError */
export async function findSnapshots({
  journal,
  snapshots,
  logger,
}: Pick<ReadDeps, "snapshots" | "logger"> & { readonly journal: JournalReader }): Promise<FoundSnapshots> {
  const unreadable: UnreadableSnapshot[] = [];
  const placed = await readManifests(snapshots, logger);
  for (const { place, hash, manifest } of placed) {
    if (await isLeftOut(manifest, placed, journal)) {
      unreadable.push({ place, why: leftOut(manifest, logger) });
      continue;
    }
    const { idx, seq } = manifest.position;
    const fault = await faultIn(manifest, snapshots);
    if (fault === undefined) {
      requireReached(await journal.position(), { idx, seq });
      return { read: { place, hash, idx, seq }, unreadable };
    }
    logger.error({ err: fault, idx }, "a snapshot cannot be read");
    unreadable.push({ place, why: whyUnreadable(manifest, fault.message) });
  }
  await requireBeginning(journal, snapshots);
  return { read: undefined, unreadable };
}

/** What was found, once the one that was read cannot be read any more. */
export function withFault(
  { read, unreadable }: FoundSnapshots,
  manifest: Manifest,
  fault: JournalDamagedError,
): FoundSnapshots {
  if (read === undefined) return { read, unreadable };
  const { place } = read;
  return {
    read: undefined,
    unreadable: [...unreadable, { place, why: whyUnreadable(manifest, fault.message) }],
  };
}

/** @returns why, a sentence without its full stop */
function leftOut({ position: { idx } }: Manifest, logger: SnapshotLog): string {
  logger.error({ idx }, "a snapshot is left out: the journal does not go on behind it");
  return `behind that of batch ${idx} the journal does not go on`;
}

function whyUnreadable({ position }: Manifest, reason: string): string {
  return `that of batch ${position.idx} cannot be read: ${reason}`;
}

/** Gives every record behind `seq` to `take`, to where the journal ends or to the record `untilSeq`, in slices of
 *  `limits.snapshotSliceMs`. @throws UnreachableError, JournalDamagedError, and what `take` throws */
export async function readToEnd(
  { journal, clock }: { readonly journal: JournalReader; readonly clock: Clock },
  seq: number,
  take: (record: JournalRecord) => void,
  untilSeq = Number.POSITIVE_INFINITY,
): Promise<void> {
  const slices = new Slices(clock, limits.snapshotSliceMs);
  if (seq >= untilSeq) return;
  for await (const record of journal.replay(seq + 1)) {
    take(record);
    if (record.seq >= untilSeq) return;
    if (slices.isOver) await slices.pause();
  }
}

interface ReadDeps {
  readonly snapshots: SnapshotStore;
  readonly clock: Clock;
  readonly logger: SnapshotLog;
}

/** @returns why it cannot be read, where it cannot */
async function readOrPassOver(manifest: Manifest, deps: ReadDeps): Promise<Replay | string> {
  try {
    return await readSnapshot(manifest, deps);
  } catch (cause) {
    if (!(cause instanceof JournalDamagedError)) throw cause;
    const { idx } = manifest.position;
    deps.logger.error(
      { err: cause, idx },
      "a snapshot cannot be read: an older one is taken, or the journal",
    );
    return cause.message;
  }
}

async function readSnapshot(manifest: Manifest, { snapshots, clock }: ReadDeps): Promise<Replay> {
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

const advice =
  "Restore the storage of the journal and of its snapshots, or, to begin anew without what they held, remove both";

const deleted =
  "the journal is empty, but there are snapshots of one: its stream or its files were deleted, and the snapshots were not";
const adviceDeleted =
  "Restore the storage of the journal, or, to begin anew without what it held, remove the snapshots as well (the stream " +
  "`WAGGLE_<swarm>_SNAP`, by `nats stream rm`, or the folder `snapshots` of the journal)";

/** No snapshot that can be read leads to where the journal begins: nobody who starts can know the state any more. */
export class SnapshotsLostError extends MissingRecordsError {}

/** What a restart would read behind the newest snapshot that can be read is damaged, as who reads it for the next one
 *  found. Another's purge, or a server that lags, looks the same once. */
export class RestartLostError extends JournalDamagedError {}

/** Whether what a snapshot would be made from cannot be read. */
export function isRestartLost(cause: unknown): cause is RestartLostError | SnapshotsLostError {
  return cause instanceof RestartLostError || cause instanceof SnapshotsLostError;
}

/** The journal ends before the newest snapshot goes on. Whoever is alone with it may go on from `folded`. */
export class EndLostError extends MissingRecordsError {
  /** What the snapshot holds. */
  readonly folded: Folded;
  /** Where the journal ends. */
  readonly lastSeq: number;

  constructor(sentence: string, folded: Folded, lastSeq: number) {
    super(sentence);
    this.folded = folded;
    this.lastSeq = lastSeq;
  }
}

/** The journal holds the record at which the snapshot ends, or was purged up to it and goes on behind it. */
async function requireContinued(journal: JournalReader, folded: Folded): Promise<void> {
  const { position } = folded;
  const { firstSeq, lastSeq } = await journal.position();
  if (lastSeq < position.seq) {
    const what =
      lastSeq === 0
        ? `${deleted}, of batch ${position.idx} the newest. ${adviceDeleted}`
        : `the journal ends at record ${lastSeq}, but ${goesOn(position)}: its end is lost. ${advice}`;
    throw new EndLostError(what, folded, lastSeq);
  }
  requireReached({ firstSeq }, position);
  const record = position.seq < firstSeq ? undefined : await journal.read(position.seq);
  const batch = record === undefined ? undefined : decodeBatch(record.bytes);
  if (batch !== undefined && batch.journal !== position.journal)
    throw new JournalDamagedError(`this is not the journal whose snapshots these are. ${advice}`);
}

type Reach = Pick<ChainPosition, "idx" | "seq">;

/** Whether the journal does not go on behind a snapshot: it begins further on, where another leads, or another line
 *  stands there. @throws UnreachableError, JournalDamagedError */
async function isLeftOut(
  { position }: Manifest,
  placed: readonly PlacedManifest[],
  journal: JournalReader,
): Promise<boolean> {
  const { firstSeq } = await journal.position();
  if (position.seq + 1 >= firstSeq) return await isOfAnotherLine(position, journal);
  return placed.some(({ manifest }) => manifest.position.seq + 1 >= firstSeq);
}

/** Whether those who went on behind a record went on from another batch than the snapshot's. No more batches that
 *  continue it are read than a leader has in flight: who is deposed stores no more. */
async function isOfAnotherLine(position: ChainPosition, journal: JournalReader): Promise<boolean> {
  let tail: ChainTail = position;
  try {
    for await (const { bytes } of journal.replay(position.seq + 1)) {
      const batch = decodeBatch(bytes);
      const death = batch && deathOf(batch, tail);
      if (batch === undefined) continue;
      if (death === "broken-chain" && isBehindMore(batch, tail)) return true;
      if (death !== undefined) continue;
      if (batch.idx > position.idx + limits.batchesInFlightMax) return false;
      tail = { ...batch, hash: hashOf(bytes) };
    }
  } catch (cause) {
    if (!(cause instanceof MissingRecordsError)) throw cause; // who reads it meets that, too
  }
  return false;
}

function requireReached({ firstSeq }: { readonly firstSeq: number }, reach: Reach): void {
  if (firstSeq <= reach.seq + 1) return;
  throw new SnapshotsLostError(
    `the journal begins at record ${firstSeq}, but ${goesOn(reach)}: records are lost. ${advice}`,
  );
}

function goesOn({ idx, seq }: Reach): string {
  return `the snapshot of batch ${idx} goes on behind record ${seq}`;
}

/** Even snapshots that cannot be read say that there was a journal. */
async function requireBeginning(journal: JournalReader, snapshots: SnapshotStore | undefined): Promise<void> {
  const { firstSeq, lastSeq } = await journal.position();
  if (lastSeq === 0 && snapshots !== undefined && (await snapshots.manifests()).length > 0)
    throw new MissingRecordsError(`${deleted}, which cannot be read. ${adviceDeleted}`);
  if (firstSeq > 1)
    throw new SnapshotsLostError(
      `the journal begins at record ${firstSeq} and no snapshot can be read that leads there: what led to it is not known. Restore the storage of the snapshots, or start a new swarm`,
    );
}

/** Two may have saved an end that the journal lost: then its batch stands in no record. */
function isSameBatch({ position: one }: Manifest, { position: other }: Manifest): boolean {
  return one.idx === other.idx && one.hash === other.hash;
}

/** @param furtherManifests of snapshots that reach further than where the reading began */
function requireWhole({ position, places }: Replay, furtherManifests: readonly Manifest[]): void {
  for (const manifest of furtherManifests) {
    const { idx, seq } = manifest.position;
    const ownSeq = places.seqOf(idx);
    const nextSeq = places.seqOf(batchIndex(idx + 1));
    if (ownSeq !== undefined && ownSeq <= seq && (nextSeq === undefined || nextSeq > seq)) continue;
    throw new MissingRecordsError(
      `a snapshot says that the journal had batch ${idx} before record ${seq + 1}, but reading it ended at batch ${position.idx}, record ${position.seq}: history was lost. ${advice}`,
    );
  }
}
