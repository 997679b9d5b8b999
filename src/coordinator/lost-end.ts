// Going on where the journal lost an end that nobody puts back, and that is known all the same: from a snapshot, or
// from what a standby folded. A snapshot of it says that the journal goes on at its actual end; behind it, a term
// begins like any other. Should what was lost be put back after all, it is dead records to whoever began here, and
// nothing more.
//
// The rule: only where the journal ends with a batch that stood there, and perhaps dead records behind it. What went on
// differently is a fork, and a journal without a record is another one, or none: whoever deleted it did not ask to go
// on. That nothing is found where it says that it ends proves nothing: its server may know less than it holds.

import type { Clock } from "../clock.ts";
import type { JournalDamagedError } from "../errors.ts";
import { type Batch, decodeBatch, hashOf } from "../journal/batch.ts";
import type { Journal } from "../journal/journal.ts";
import { type ChainTail, deathOf, type Folded, isBehindMore } from "../journal/replay.ts";
import type { SnapshotLog } from "../journal/snapshot/manifests.ts";
import { snapshotNow } from "../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";

export interface LostEndDeps {
  readonly journal: Journal;
  /** Absent where there are none: then nothing can be gone on from. */
  readonly snapshots?: SnapshotStore;
  readonly clock: Clock;
  readonly logger: SnapshotLog;
}

/** Resolves once a snapshot of `folded` is durable behind which the journal goes on at `lastSeq`; with false where it
 *  is not known whether that would be a fork, for what stands there is not found.
 *  @throws `lost` where it would be one, or there is nowhere to save; UnreachableError, JournalDamagedError;
 *  WaggleError WAGGLE_JOURNAL_FULL */
export async function goOnBehind(
  { folded, lastSeq, lost }: { folded: Folded; lastSeq: number; lost: JournalDamagedError },
  { journal, snapshots, clock, logger }: LostEndDeps,
): Promise<boolean> {
  if (snapshots === undefined) throw lost;
  const line = await lineAt(lastSeq, folded, journal);
  if (line === "another") throw lost;
  if (line === "unknown") return false;
  const { state, position, lastEventType, places, deadRecords, alienRecords } = folded;
  const end = { ...position, seq: lastSeq };
  const behind = { state, position: end, lastEventType, places, deadRecords, alienRecords };
  await snapshotNow(behind, { store: snapshots, clock, logger });
  logger.error(
    { err: lost, idx: position.idx, lastSeq },
    "the journal lost its end, and nobody puts it back: the state is saved, and the journal goes on where it ends",
  );
  return true;
}

/** Whose line of batches the journal ends with. */
async function lineAt(
  lastSeq: number,
  { places, position }: Folded,
  journal: Journal,
): Promise<"ours" | "another" | "unknown"> {
  if (lastSeq === 0) return "another"; // nothing stands there; and a server that is asked for record 0 does not say so
  const idx = places.lastUntil(lastSeq);
  const ownSeq = idx === undefined ? undefined : places.seqOf(idx);
  if (idx === undefined || ownSeq === undefined) return "another";
  const found = await journal.read(ownSeq);
  if (found === undefined) return "unknown";
  const own = decodeBatch(found.bytes);
  if (own === undefined) return "another";
  const tail: ChainTail = { ...own, hash: hashOf(found.bytes) };
  const isIt = idx === position.idx ? tail.hash === position.hash : places.isBatch(idx, tail.hash);
  const mayBeIt = tail.idx === idx && tail.journal === position.journal && tail.term <= position.term;
  if (!(isIt ?? mayBeIt)) return "another";
  for (let seq = ownSeq + 1; seq <= lastSeq; seq += 1) {
    const record = await journal.read(seq);
    if (record === undefined) return "unknown";
    const batch = decodeBatch(record.bytes);
    if (batch !== undefined && goesOn(batch, tail)) return "another";
  }
  return "ours";
}

/** Whether somebody went on with it: behind that one, or behind what stood behind it. */
function goesOn(batch: Batch, tail: ChainTail): boolean {
  const death = deathOf(batch, tail);
  return death === undefined || (death === "broken-chain" && isBehindMore(batch, tail));
}
