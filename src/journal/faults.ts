// What is wrong with a journal, its snapshots, or with the way to them, in words. Shared by all of them, so that a
// reader of the log need not know which of them spoke.

import { JournalDamagedError, UnreachableError, WaggleError } from "../errors.ts";

/** The journal was closed by its own user. */
export function closedError(): UnreachableError {
  return new UnreachableError("this journal was closed; open it again");
}

/** The snapshot store was closed by its own user. */
export function snapshotsClosedError(): UnreachableError {
  return new UnreachableError("this snapshot store was closed; open it again");
}

/** No room for a part of a snapshot, by configured bound or by disk. `reason` is a clause. */
export function snapshotsFullError(reason: string): WaggleError {
  return new WaggleError("WAGGLE_JOURNAL_FULL", `a snapshot cannot be stored: ${reason}; give it more room`);
}

/** A reader asked for `fromSeq` or had come so far, and what is stored begins at `firstSeq`. */
export function purgedError(fromSeq: number, firstSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `records ${fromSeq} to ${firstSeq - 1} are no longer in the journal, it begins at ${firstSeq}; ` +
      "start from a snapshot that reaches so far",
  );
}

/** A record is missing between others that are stored. */
export function holeError(seq: number, lastSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal lost record ${seq} and goes on to ${lastSeq}; a hole cannot be refilled, so start from a ` +
      "snapshot that reaches beyond it",
  );
}

/** The journal lost its end and something else was written in its place. */
export function rewrittenError(seq: number): JournalDamagedError {
  return new JournalDamagedError(
    `record ${seq} is no longer what was read there: the journal lost its end and went on differently; ` +
      "read it again from the start or from a snapshot",
  );
}

/** The journal ends before a record that was its last one. */
export function shrunkError(lastSeq: number, wantedSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal ends at record ${lastSeq} but ended at ${wantedSeq} before; what a coordinator still holds ` +
      "of the rest it appends again when it starts",
  );
}
