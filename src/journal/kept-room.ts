// How much of a journal's room is for the record that is kept to be read, and how much room a record takes. Above
// `limits.journalFullShare` of it tasks are refused, and the record is cut only when a snapshot was made: so the room
// of what comes between two snapshots is left free twice below that share, once for what comes until the next is due,
// and once for what comes while that is made and put on record.

import { limits } from "../limits.ts";

/** A snapshot is due after so many bytes of a journal. @param bytesMax its room; undefined where it has no bound */
export function snapshotSpacingBytes(bytesMax = Number.POSITIVE_INFINITY): number {
  return Math.min(limits.snapshotBytes, bytesMax * limits.snapshotJournalShare);
}

/** The most that is kept to be read. @param bytesMax the journal's room; undefined where it has no bound
 *  @param cameBytes what came between the last two snapshots */
export function keptBytesMax(bytesMax = Number.POSITIVE_INFINITY, cameBytes = 0): number {
  const comingBytes = Math.max(snapshotSpacingBytes(bytesMax), cameBytes);
  return Math.max(0, Math.floor(bytesMax * limits.journalFullShare - 2 * comingBytes));
}

/** The room that a journal is made with: by default, or more where that does not hold what is to be kept.
 *  @param keptBytes infinite where no size was said */
export function wantedRoom(keptBytes: number): number {
  const room = roomToKeep(keptBytes);
  return Number.isSafeInteger(room) ? Math.max(limits.journalBytesMax, room) : limits.journalBytesMax;
}

/** The room in which so much can be kept; infinite for all. */
export function roomToKeep(bytes: number): number {
  const spacingShare = 2 * limits.snapshotJournalShare;
  const ofSmall = bytes / (limits.journalFullShare - spacingShare);
  const ofLarge = (bytes + 2 * limits.snapshotBytes) / limits.journalFullShare;
  return Math.ceil(Math.min(ofSmall, ofLarge));
}
