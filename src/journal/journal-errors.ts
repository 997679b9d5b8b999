// The errors of every journal, whatever the storage, so that logs and tests read the same for all journals.

import { JournalDamagedError, UnreachableError, WaggleError } from "../errors.ts";

/** The journal was closed by the caller. */
export function closedError(): UnreachableError {
  return new UnreachableError("this journal was closed; open it again");
}

/** @param reason a clause @param remedy a clause that says how to give the journal more room */
export function fullError(reason: string, remedy = "give the journal more room"): WaggleError {
  return new WaggleError("WAGGLE_JOURNAL_FULL", `a segment cannot be created: ${reason}; ${remedy}`);
}

const REMEDY =
  "a running coordinator continues in a new segment by itself; if none runs, restore the storage from a backup, or run " +
  "`waggle journal recover`";

/** @param what names the place and the old journal @param removal a clause: how to take the old journal away */
export function earlierFormError(what: string, removal: string): WaggleError {
  return new WaggleError(
    "WAGGLE_JOURNAL_SETTINGS",
    `${what} holds a journal of an earlier version of waggle, which this version cannot read; finish the tasks with that ` +
      `version, then ${removal}, or use a different swarm name`,
  );
}

/** The fault alone, where the remedy is said elsewhere. */
export function withoutRemedy(message: string): string {
  return message.replace(`; ${REMEDY}`, "");
}

/** A reader asked for a segment that does not exist. */
export function noSegmentError(segment: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal has no segment ${segment}: it was removed, or the storage lost it; ${REMEDY}`,
  );
}

/** A record below the segment's end is not stored. */
export function gapError(segment: number, position: number, end: number): JournalDamagedError {
  return new JournalDamagedError(
    `record ${position} of segment ${segment} is missing, and the segment ends at ${end}; ${REMEDY}`,
  );
}

/** A reader needs a record beyond the segment's end: the segment was longer before. */
export function shortError(segment: number, position: number, end: number): JournalDamagedError {
  return new JournalDamagedError(
    `segment ${segment} ends at record ${end}, before the expected record ${position}; ${REMEDY}`,
  );
}

/** A stored record cannot be read. @param reason a clause that says more */
export function unreadableError(
  segment: number,
  position: number,
  reason = "cannot be read",
): JournalDamagedError {
  return new JournalDamagedError(`record ${position} of segment ${segment} ${reason}; ${REMEDY}`);
}
