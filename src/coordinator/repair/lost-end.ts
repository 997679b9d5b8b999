// Going on where the journal lost an end that nobody puts back, and that is known all the same: from a snapshot, or
// from what a standby folded. A snapshot of it says that the journal goes on at its actual end; behind it, a term
// begins like any other. Should what was lost be put back after all, it is dead records to whoever began here, and
// nothing more.
//
// The rule: only where the journal ends with our line (line-end.ts). What went on differently is a fork, and a journal
// without a record is another one, or none: whoever deleted it did not ask to go on.

import type { Clock } from "../../clock.ts";
import type { JournalDamagedError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { type Folded, foldedBehind } from "../../journal/replay.ts";
import type { SnapshotLog } from "../../journal/snapshot/manifests.ts";
import { snapshotNow } from "../../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { ownerOfEnd } from "./line-end.ts";

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
  const owner = await ownerOfEnd(lastSeq, folded, { journal, mayReplace: false });
  if (owner === "another") throw lost;
  if (owner === "unknown") return false;
  await snapshotNow(foldedBehind(folded, lastSeq), { store: snapshots, journal, clock, logger });
  logger.error(
    { err: lost, idx: folded.position.idx, lastSeq },
    "the journal lost its end, and nobody puts it back: the state is saved, and the journal goes on where it ends",
  );
  return true;
}
