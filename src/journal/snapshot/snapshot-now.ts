// A snapshot from a state that somebody still has in memory, where the journal cannot give it any more: a hole, or an
// end that was lost and that nobody holds.
//
// The contract, for whoever leads or stands by and calls it:
// - Before: no batch is in flight, `folded.state` is the fold up to `folded.position.idx`, and every batch up to it
//   was committed. Freeze: no turn but beats, no answer until it resolves, for the state is written while others use
//   the loop (in slices of `limits.snapshotSliceMs`, so that connections live).
// - `folded.position.seq` is the record behind which the journal goes on: for a hole its last record; for a lost end
//   the last record that is left, for that is where the next batch will stand. `folded.places` may know places that
//   are lost now; the audit's beginning (`AuditTrimmed`) says which are not to be read.
// - After: whoever reads the journal anew begins here. Append the next batch at `position.seq + 1`, with `hash` of
//   the position as its `prev`. Snapshots are removed that are older than one whose chunks are all there, which stays
//   for where the journal is whole behind it, or its storage is restored; should this one be damaged and that not
//   help, reading halts (restore.ts) and loses nothing silently. That is the one that leads through the journal as it
//   is now, where there is one: writing may take long, and others go on from that one meanwhile. Where none of them can
//   be read they go, unless one says that there was more. Nothing is removed while the journal does not answer, nor
//   where it was purged, or went on differently, behind what was written.
// - A failure leaves the state as it was: call again.

import type { Clock } from "../../clock.ts";
import { mayPass } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { JournalReader, JournalRecord } from "../journal.ts";
import type { Folded } from "../replay.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { isLeftOut } from "./left-out.ts";
import { lookFor } from "./look.ts";
import type { Manifest } from "./manifest.ts";
import { firstPlaceOf, type PlacedManifest, readManifests, type SnapshotLog } from "./manifests.ts";
import { faultIn } from "./read.ts";
import { NotGivenBackError, writeSnapshot } from "./write.ts";

/** Resolves when the snapshot is durable and was read back.
 *  @throws UnreachableError, JournalDamagedError; WaggleError WAGGLE_JOURNAL_FULL */
export async function snapshotNow(folded: Folded, deps: NowDeps): Promise<Manifest> {
  const manifest = await writeOrClear(folded, deps);
  const placed = await othersThan(manifest, deps);
  const others = placed.map((other) => other.manifest);
  const candidates = await leadingFirst(manifest, placed, deps.journal);
  if (candidates === undefined) return manifest;
  const older = await firstStored(candidates, deps.store);
  if (older !== undefined) await removeBefore([older, manifest], placed, deps.store);
  else if (others.every((other) => isWithin(other, manifest)))
    await removeBefore([manifest], placed, deps.store);
  return manifest;
}

/** Those of the same journal, first the ones that are not left out, as far as the records right behind each show it;
 *  undefined where the made one is left out itself, for nobody would begin at it, or the journal does not answer. */
async function leadingFirst(
  made: Manifest,
  placed: readonly PlacedManifest[],
  journal: JournalReader,
): Promise<readonly Manifest[] | undefined> {
  const line = { position: () => journal.position(), replay: (seq: number) => fewFrom(seq, journal) };
  const led: Manifest[] = [];
  const leftOut: Manifest[] = [];
  try {
    if (await isLeftOut(made, placed, line)) return undefined;
    for (const { manifest } of placed) {
      if (!isOfOne(manifest, made)) continue;
      ((await isLeftOut(manifest, placed, line)) ? leftOut : led).push(manifest);
    }
  } catch (cause) {
    if (!mayPass(cause)) throw cause;
    return undefined;
  }
  return [...led, ...leftOut];
}

/** A journal that lost records may keep whoever reads on waiting. */
async function* fewFrom(seq: number, journal: JournalReader): AsyncGenerator<JournalRecord> {
  for (let next = seq; next < seq + limits.lineGlanceRecordsMax; next += 1) {
    const record = await journal.read(next);
    if (record === undefined) return;
    yield record;
  }
}

/** Removes snapshots before those that are kept, and nothing behind the last of them: what stands there has no manifest
 *  yet, for another is writing it, who saves the same end. */
async function removeBefore(
  kept: readonly Manifest[],
  placed: readonly PlacedManifest[],
  store: SnapshotStore,
): Promise<void> {
  const keptFrom = firstPlaceOf(kept);
  const lastGone = Math.max(0, ...placed.map(({ place }) => place).filter((place) => place < keptFrom));
  if (lastGone > 0) await store.removeBelow(lastGone + 1);
}

interface NowDeps {
  readonly store: SnapshotStore;
  readonly journal: JournalReader;
  readonly clock: Clock;
  readonly logger: SnapshotLog;
}

/** A storage that does not give back what was just put may do so once it is empty: nats-server 2.9 behind bits that
 *  flipped. It is emptied where nothing in it can be read that could be lost with it, however often it is asked, and
 *  the next try is the better one. */
async function writeOrClear(folded: Folded, deps: NowDeps): Promise<Manifest> {
  try {
    return await writeSnapshot(folded, deps);
  } catch (cause) {
    if (cause instanceof NotGivenBackError) await clearUnreadable(folded, cause.place, deps);
    throw cause;
  }
}

/** @param upTo what was put behind that place is somebody else's, and stays */
async function clearUnreadable(folded: Folded, upTo: number, deps: NowDeps): Promise<void> {
  const { store, clock, logger } = deps;
  if ((await lookFor(() => worthKeeping(folded, deps), clock)) !== undefined) return;
  logger.error({}, "the storage of snapshots gives back nothing of what it holds: it is emptied");
  await store.removeBelow(upTo + 1);
}

/** One that says that there was more, or that can be read. */
async function worthKeeping(folded: Folded, { store, logger }: NowDeps): Promise<Manifest | undefined> {
  const manifests = (await readManifests(store, logger)).map(({ manifest }) => manifest);
  return manifests.find((each) => !isWithin(each, folded)) ?? (await firstStored(manifests, store));
}

async function othersThan(made: Manifest, { store, logger }: NowDeps): Promise<readonly PlacedManifest[]> {
  const madeFrom = firstPlaceOf([made]);
  return (await readManifests(store, logger)).filter(({ manifest }) => firstPlaceOf([manifest]) !== madeFrom);
}

type Positioned = Pick<Manifest, "position">;

function isOfOne({ position }: Positioned, { position: made }: Positioned): boolean {
  return position.journal === made.journal;
}

/** Whether it says of nothing that the made one does not hold. */
function isWithin(other: Positioned, made: Positioned): boolean {
  return isOfOne(other, made) && other.position.idx <= made.position.idx;
}

/** The first that is there in whole, if any. @param manifests the one to be kept first */
async function firstStored(
  manifests: readonly Manifest[],
  store: SnapshotStore,
): Promise<Manifest | undefined> {
  for (const manifest of manifests) if ((await faultIn(manifest, store)) === undefined) return manifest;
  return undefined;
}
