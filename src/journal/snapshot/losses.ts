// What a journal and its snapshots have lost, as typed errors for who decides by them, each with the sentence that says
// what to do. Found out in restore.ts; of a journal without snapshots speaks journal-errors.ts. All of them are
// JournalDamagedError, for what would be appended now would stand where the next reader does not look.

import { JournalDamagedError, MissingRecordsError } from "../../errors.ts";
import type { ChainPosition, Folded } from "../replay.ts";

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

  constructor(folded: Folded, lastSeq: number) {
    const { position } = folded;
    super(
      lastSeq === 0
        ? `${deleted}, of batch ${position.idx} the newest. ${adviceDeleted}`
        : `the journal ends at record ${lastSeq}, but ${goesOn(position)}: its end is lost. ${advice}`,
    );
    this.folded = folded;
    this.lastSeq = lastSeq;
  }
}

/** How far a snapshot reaches: its last batch, and the record behind which the journal goes on. */
export type Reach = Pick<ChainPosition, "idx" | "seq">;

/** The journal was purged further than the snapshot reaches that would be read. */
export function purgedBeyondError(firstSeq: number, reach: Reach): SnapshotsLostError {
  return new SnapshotsLostError(
    `the journal begins at record ${firstSeq}, but ${goesOn(reach)}: records are lost. ${advice}`,
  );
}

/** The journal was purged, and no snapshot can be read. */
export function noSnapshotError(firstSeq: number): SnapshotsLostError {
  return new SnapshotsLostError(
    `the journal begins at record ${firstSeq} and no snapshot can be read that leads there: what led to it is not ` +
      `known. ${advice}`,
  );
}

/** The journal is without a record, and snapshots that cannot be read say that there was one. */
export function journalDeletedError(): MissingRecordsError {
  return new MissingRecordsError(`${deleted}, which cannot be read. ${adviceDeleted}`);
}

/** The journal has another identity than the one that was folded. */
export function otherJournalError(): JournalDamagedError {
  return new JournalDamagedError(`this is not the journal whose snapshots these are. ${advice}`);
}

/** A reading to the journal's end, at `end`, did not come through the batch that a manifest names. */
export function historyLostError({ idx, seq }: Reach, end: Reach): MissingRecordsError {
  return new MissingRecordsError(
    `a snapshot says that the journal had batch ${idx} before record ${seq + 1}, but reading it ended at batch ` +
      `${end.idx}, record ${end.seq}: history was lost. ${advice}`,
  );
}

function goesOn({ idx, seq }: Reach): string {
  return `the snapshot of batch ${idx} goes on behind record ${seq}`;
}

const advice =
  "Restore the storage of the journal and of its snapshots, or, to begin anew without what they held, remove both (the " +
  "streams `WAGGLE_<swarm>` and `WAGGLE_<swarm>_SNAP`, by `nats stream rm`, or the journal's folder)";

const deleted =
  "the journal is empty, but there are snapshots of one: its stream or its files were deleted, and the snapshots were not";
const adviceDeleted =
  "Restore the storage of the journal, or, to begin anew without what it held, remove the snapshots as well (the stream " +
  "`WAGGLE_<swarm>_SNAP`, by `nats stream rm`, or the folder `snapshots` of the journal)";
