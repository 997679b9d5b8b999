// What is wrong with a journal, its snapshots, or with the way to them, in words. Shared by all of them, so that a
// reader of the log need not know which of them spoke.

import {
  JournalDamagedError,
  MissingRecordsError,
  RewrittenError,
  UnreachableError,
  WaggleError,
} from "../errors.ts";

/** The journal was closed by its own user. */
export function closedError(): UnreachableError {
  return new UnreachableError("this journal was closed; open it again");
}

/** The snapshot store was closed by its own user. */
export function snapshotsClosedError(): UnreachableError {
  return new UnreachableError("this snapshot store was closed; open it again");
}

/** No room for a part of a snapshot, by configured bound or by disk. `reason` is a clause, and so is `remedy`. */
export function snapshotsFullError(reason: string, remedy = "give it more room"): WaggleError {
  return new WaggleError("WAGGLE_JOURNAL_FULL", `a snapshot cannot be stored: ${reason}; ${remedy}`);
}

/** A reader asked for `fromSeq` or had come so far, and what is stored begins at `firstSeq`. */
export function purgedError(fromSeq: number, firstSeq: number): MissingRecordsError {
  return new MissingRecordsError(
    `records ${fromSeq} to ${firstSeq - 1} are no longer in the journal, it begins at ${firstSeq}; ` +
      "start from a snapshot that reaches so far",
  );
}

/** A record is missing between others that are stored. */
export function holeError(seq: number, lastSeq: number): MissingRecordsError {
  return new MissingRecordsError(
    `the journal lost record ${seq} and goes on to ${lastSeq}; a hole cannot be refilled, so start from a ` +
      "snapshot that reaches beyond it",
  );
}

/** The journal lost its end and something else was written in its place. */
export function rewrittenError(seq: number): RewrittenError {
  return new RewrittenError(
    `record ${seq} is no longer what was read there: the journal lost its end and went on differently; ` +
      "read it again from the start or from a snapshot",
  );
}

/** Of what nobody who runs would meet, but whoever starts. */
export function lostWithinError(firstSeq: number, missing: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal lost records that a restart would read: it begins at record ${firstSeq}, and ${missing} are missing ` +
      "within it. Let this coordinator run until it says that its state is saved, and look after the journal's storage; " +
      "where no snapshots are made, export what matters, and restore that from a backup",
  );
}

/** The journal counts a record that it does not find. */
export function unreadableError(seq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal acknowledged record ${seq} and does not find it: its storage is damaged, and so may be whatever it ` +
      "acknowledges now. Let this coordinator run, and restart the nats-server, or replace it by a newer one on the same " +
      "storage (from 2.10 on they cut such a store where it is damaged); nothing is answered until what is appended " +
      "is found",
  );
}

/** The journal refuses what it says that it lacks. */
export function refusedTailError(lastSeq: number, untilSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal ends at record ${lastSeq}, ended at ${untilSeq} before, and refuses what stood between: its server does not ` +
      "agree with its storage. If it stays so, restart the nats-server; what is missing is kept here and is put back then",
  );
}

/** The journal refuses what is to stand behind `lastSeq`, where by its own word it ends. */
export function refusedPlaceError(lastSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal ends at record ${lastSeq}, and refuses what is to stand behind that: its server does not agree with its ` +
      "storage. If it stays so, restart the nats-server; what was decided is kept here and is sent again",
  );
}

/** Somebody wrote behind a lost end, and the record at `seq` is not the one that stood there. */
export function forkError(seq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal lost its end, and another coordinator went on before it was put back: record ${seq} is not what ` +
      "stood there, and what was accepted behind it is lost. Start this coordinator again: it reads what is there now; " +
      "clients that were told of more say so, and submit it again under the same ids",
  );
}

/** The record at `seq` is of a later term, and does not continue what stands before it. */
export function strayError(seq: number): MissingRecordsError {
  return new MissingRecordsError(
    `record ${seq} is of a later term than those before it and does not continue them: batches before it are missing. ` +
      "Restore the storage of the journal and of its snapshots",
  );
}

/** The journal ends at `lastSeq`, and what stood behind is held by nobody any more. */
export function lostTailError(lastSeq: number, knownSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `the journal ends at record ${lastSeq} and ended at ${knownSeq} before, and this coordinator holds only the newest ` +
      "of what is missing. Restore the journal's storage, or start again from what is there: what was accepted behind " +
      "it is lost",
  );
}

/** The journal ends before a record that was its last one. */
export function shrunkError(lastSeq: number, wantedSeq: number): MissingRecordsError {
  return new MissingRecordsError(
    `the journal ends at record ${lastSeq} but ended at ${wantedSeq} before; what a coordinator still holds ` +
      "of the rest it appends again when it starts",
  );
}
