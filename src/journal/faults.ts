// What is wrong with a journal or with the way to it, in words. Shared by the journals, so that a reader
// of the log need not know which of them spoke.

import { JournalDamagedError, UnreachableError } from "../errors.ts";

/** The journal was closed by its own user. */
export function closedError(): UnreachableError {
  return new UnreachableError("this journal was closed; open it again");
}

/** A reader asked for `fromSeq` or had come so far, and what is stored begins at `firstSeq`. */
export function purgedError(fromSeq: number, firstSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `records ${fromSeq} to ${firstSeq - 1} are no longer in the journal, it begins at ${firstSeq}; ` +
      "start from a snapshot that reaches so far",
  );
}

/** Records are missing between two that are stored. */
export function holeError(missingSeq: number, nextSeq: number): JournalDamagedError {
  const which =
    missingSeq === nextSeq - 1 ? `record ${missingSeq}` : `records ${missingSeq} to ${nextSeq - 1}`;
  return new JournalDamagedError(
    `the journal lost ${which} and goes on with ${nextSeq}; a hole cannot be refilled, so start from a ` +
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
