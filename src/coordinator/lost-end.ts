// Going on where the journal lost an end that nobody puts back, and that is known all the same: from a snapshot, or
// from what a standby folded. A snapshot of it says that the journal goes on at its actual end; behind it, a term
// begins like any other. Should what was lost be put back after all, it is dead records to whoever began here, and
// nothing more.
//
// The rule: only where the journal's last record is the batch that stood there. What went on differently is a fork, and
// a journal without a record is another one, or none: whoever deleted it did not ask to go on.

import type { Clock } from "../clock.ts";
import type { JournalDamagedError } from "../errors.ts";
import { decodeBatch } from "../journal/batch.ts";
import type { Journal } from "../journal/journal.ts";
import type { Folded } from "../journal/replay.ts";
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

/** Resolves when a snapshot of `folded` is durable behind which the journal goes on at `lastSeq`.
 *  @throws `lost` where that would be a fork, or there is nowhere to save; UnreachableError, JournalDamagedError */
export async function goOnBehind(
  { folded, lastSeq, lost }: { folded: Folded; lastSeq: number; lost: JournalDamagedError },
  { journal, snapshots, clock, logger }: LostEndDeps,
): Promise<void> {
  if (snapshots === undefined || !(await isOnLine(journal, folded, lastSeq))) throw lost;
  const { state, position, lastEventType, places, deadRecords, alienRecords } = folded;
  const end = { ...position, seq: lastSeq };
  const behind = { state, position: end, lastEventType, places, deadRecords, alienRecords };
  await snapshotNow(behind, { store: snapshots, clock, logger });
  logger.error(
    { err: lost, idx: position.idx, lastSeq },
    "the journal lost its end, and nobody puts it back: the state is saved, and the journal goes on where it ends",
  );
}

async function isOnLine(journal: Journal, { places, position }: Folded, lastSeq: number): Promise<boolean> {
  if (lastSeq === 0) return false; // nothing stands there; and a server that is asked for record 0 does not say so
  const found = await journal.read(lastSeq);
  const batch = found === undefined ? undefined : decodeBatch(found.bytes);
  const idx = places.idxAt(lastSeq);
  return batch !== undefined && batch.idx === idx && batch.journal === position.journal;
}
