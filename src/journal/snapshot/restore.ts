// Where a reading of a journal begins: at the snapshot that reaches furthest and can be read, or at the first record.
// How one is read says read.ts. Authoritative is the journal. A snapshot only spares reading what led to it; and its
// manifest says that history up to its batch existed. So whoever began at an older snapshot, or at the start, must come
// through the batch of every manifest there is, but for those that are left out (left-out.ts), at the record that it
// names, or history was lost and nobody goes on as if nothing had been: `Restored.requireWhole` after reading to the
// end.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import { batchIndex } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import { decodeBatch } from "../batch.ts";
import { BatchPlaces } from "../batch-places.ts";
import type { JournalPosition, JournalReader, JournalRecord } from "../journal.ts";
import { strayError } from "../journal-errors.ts";
import { type Folded, Replay, stoodThere } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { type FoundSnapshots, type UnreadableSnapshot, whyUnreadable } from "./found.ts";
import { isLeftOut, isOfThoseBefore, leaveOut } from "./left-out.ts";
import {
  EndLostError,
  historyLostError,
  journalDeletedError,
  noSnapshotError,
  otherJournalError,
  purgedBeyondError,
  type Reach,
  SnapshotsLostError,
} from "./losses.ts";
import type { Manifest } from "./manifest.ts";
import { readManifests, type SnapshotLog } from "./manifests.ts";
import { faultIn, readSnapshot } from "./read.ts";

export interface RestoreDeps {
  readonly journal: JournalReader;
  /** Absent where there are none, and the journal is read from its first record. */
  readonly snapshots?: SnapshotStore;
  readonly clock: Clock;
  readonly logger: SnapshotLog;
}

export interface Restored {
  /** Goes on at the record behind `position.seq`. */
  readonly replay: Replay;
  /** What was read, and where it begins; undefined when the reading begins at the first record. */
  readonly manifest: Manifest | undefined;
  readonly found: FoundSnapshots;
  /** What the journal holds now up to `position.seq`, from the place of the newest batch on, as far back as it is
   *  found: to know it again, for the journal may lose that, and go on differently up to the same record. */
  readonly ending: readonly JournalRecord[];
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

/** Reads in slices of `limits.snapshotSliceMs`; of the journal only what stands where it goes on, before and right
 *  behind that. A snapshot with a chunk that is missing or not as it was written, or a manifest that cannot be
 *  read: the older one, said in the log.
 *  @param left hashes of the manifests of those behind which the journal does not go on
 *  @throws UnreachableError, JournalDamagedError */
export async function restore(
  { journal, snapshots, clock, logger }: RestoreDeps,
  left: ReadonlySet<string> = new Set(),
): Promise<Restored> {
  if (snapshots === undefined) {
    await requireBeginning(journal);
    return atFirstRecord();
  }
  const placed = await readManifests(snapshots, logger);
  const passedOver: Manifest[] = [];
  const unreadable: UnreadableSnapshot[] = [];
  for (const { place, hash, manifest } of placed) {
    if (left.has(hash) || (await isLeftOut(manifest, placed, journal))) {
      unreadable.push({ place, why: leaveOut(manifest, logger) });
      continue;
    }
    const replay = await readOrPassOver(manifest, { snapshots, clock, logger });
    if (replay instanceof JournalDamagedError) {
      passedOver.push(manifest);
      unreadable.push({ place, why: whyUnreadable(manifest, replay) });
      continue;
    }
    const at = await journal.position();
    const ending = await endingOf(journal, replay, at);
    if (ending.some((record) => isOfThoseBefore(record, replay))) {
      unreadable.push({ place, why: leaveOut(manifest, logger) });
      continue;
    }
    requireContinued(replay, ending, at);
    const { idx, seq, hash: batchHash } = manifest.position;
    const found = { read: { place, hash, idx, seq, batchHash }, unreadable };
    const others = passedOver.filter((other) => !isSameBatch(other, manifest));
    return { replay, manifest, found, ending, requireWhole: () => requireWhole(replay, others) };
  }
  await requireBeginning(journal, snapshots);
  return atFirstRecord(unreadable, passedOver);
}

function atFirstRecord(
  unreadable: readonly UnreadableSnapshot[] = [],
  passedOver: readonly Manifest[] = [],
): Restored {
  const replay = new Replay();
  const found = { read: undefined, unreadable };
  return {
    replay,
    manifest: undefined,
    found,
    ending: [],
    requireWhole: () => requireWhole(replay, passedOver),
  };
}

/** Which of them a restart would begin at: the furthest whose chunks are all there as they were written, and behind
 *  which the journal goes on. Of their lines nothing is read, and of the journal what stands right behind them and
 *  where they end.
 *  @throws SnapshotsLostError where a restart would find nothing that leads to the journal's beginning;
 *  JournalDamagedError, UnreachableError */
export async function findSnapshots({
  journal,
  snapshots,
  logger,
}: Omit<Required<RestoreDeps>, "clock">): Promise<FoundSnapshots> {
  const unreadable: UnreadableSnapshot[] = [];
  const placed = await readManifests(snapshots, logger);
  for (const { place, hash, manifest } of placed) {
    if (await isLeftOut(manifest, placed, journal)) {
      unreadable.push({ place, why: leaveOut(manifest, logger) });
      continue;
    }
    const { idx, seq, hash: batchHash } = manifest.position;
    const at = await journal.position();
    const folded = { position: manifest.position, places: new BatchPlaces(manifest.runs) };
    const ending = await endingOf(journal, folded, at);
    if (ending.some((record) => isOfThoseBefore(record, folded))) {
      unreadable.push({ place, why: leaveOut(manifest, logger) });
      continue;
    }
    const fault = await faultIn(manifest, snapshots);
    if (fault === undefined) {
      requireReached(at, { idx, seq });
      return { read: { place, hash, idx, seq, batchHash }, unreadable };
    }
    logger.error({ err: fault, idx }, "a snapshot cannot be read");
    unreadable.push({ place, why: whyUnreadable(manifest, fault) });
  }
  await requireBeginning(journal, snapshots);
  return { read: undefined, unreadable };
}

/** Gives every record behind `seq` to `take`, to where the journal ends or to the record `untilSeq`, in slices of
 *  `limits.snapshotSliceMs`. @throws UnreachableError, JournalDamagedError, and what `take` throws */
async function readToEnd(
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

/** @returns why it cannot be read, where it cannot, which is said in the log. @throws UnreachableError */
async function readOrPassOver(
  manifest: Manifest,
  deps: Omit<Required<RestoreDeps>, "journal">,
): Promise<Replay | JournalDamagedError> {
  try {
    return await readSnapshot(manifest, deps);
  } catch (cause) {
    if (!(cause instanceof JournalDamagedError)) throw cause;
    const { idx } = manifest.position;
    deps.logger.error(
      { err: cause, idx },
      "a snapshot cannot be read: an older one is taken, or the journal",
    );
    return cause;
  }
}

/** The journal holds the record at which the snapshot ends, or was purged up to it and goes on behind it.
 *  @param ending what it holds there */
function requireContinued(
  folded: Folded,
  ending: readonly JournalRecord[],
  { firstSeq, lastSeq }: JournalPosition,
): void {
  const { position, places } = folded;
  if (lastSeq < position.seq) throw new EndLostError(folded, lastSeq); // what stands in a lost one's place may be anybody's
  requireReached({ firstSeq }, position);
  const newestIdx = places.lastUntil(position.seq);
  const newestSeq = newestIdx && places.seqOf(newestIdx);
  const newest = ending.find(({ seq }) => seq === (newestSeq ?? position.seq));
  const batch = newest && decodeBatch(newest.bytes);
  if (batch !== undefined && batch.journal !== position.journal) throw otherJournalError();
}

/** What the journal holds where a snapshot ends, or up to where it ends itself before that, from the newest batch on
 *  that stands where it stood, as far back as it is found. */
async function endingOf(
  journal: Pick<JournalReader, "read">,
  folded: Pick<Folded, "places" | "position">,
  { firstSeq, lastSeq }: JournalPosition,
): Promise<readonly JournalRecord[]> {
  const endSeq = Math.min(lastSeq, folded.position.seq);
  const lowestSeq = Math.max(1, firstSeq, endSeq - limits.deadComparedMax);
  const backwards: JournalRecord[] = [];
  let bytes = 0;
  for (let seq = endSeq; seq >= lowestSeq && bytes <= limits.recentRecordsBytes; seq -= 1) {
    const record = await journal.read(seq);
    if (record === undefined) break;
    backwards.push(record);
    bytes += record.bytes.length;
    if (stoodThere(record, folded)) break;
  }
  return backwards.reverse();
}

function requireReached({ firstSeq }: { readonly firstSeq: number }, reach: Reach): void {
  if (firstSeq > reach.seq + 1) throw purgedBeyondError(firstSeq, reach);
}

/** Even snapshots that cannot be read say that there was a journal. */
async function requireBeginning(journal: JournalReader, snapshots?: SnapshotStore): Promise<void> {
  const { firstSeq, lastSeq } = await journal.position();
  if (lastSeq === 0 && snapshots !== undefined && (await snapshots.manifests()).length > 0)
    throw journalDeletedError();
  if (firstSeq > 1) throw noSnapshotError(firstSeq);
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
    throw historyLostError(manifest.position, position);
  }
}
