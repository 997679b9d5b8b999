// How much of a journal's room is for the audit, and how much room an audit takes. Above `limits.journalFullShare`
// of it tasks are refused, and segments are removed only behind a new base. So the room of what comes between two
// bases is left free twice below that share: once for what comes until the next is due, and once for what comes
// while it is made.

import { limits } from "../../limits.ts";
import { baseSpacingBytes } from "./newest-base.ts";

/** The most of the audit that is kept. @param bytesMax the journal's room; undefined where it has no bound
 *  @param spacingBytes what comes between two bases. Default: as of a small state */
export function keptBytesMax(
  bytesMax = Number.POSITIVE_INFINITY,
  spacingBytes = baseSpacingBytes(undefined, { bytesMax }),
): number {
  return Math.max(0, Math.floor(bytesMax * limits.journalFullShare - 2 * spacingBytes));
}

/** The room of a journal: by default, or more where that does not hold what is to be kept.
 *  @param keptBytes infinite where no size was said */
export function wantedRoom(keptBytes: number): number {
  const room = roomToKeep(keptBytes);
  return Number.isSafeInteger(room) ? Math.max(limits.journalBytesMax, room) : limits.journalBytesMax;
}

/** The room in which so much can be kept; infinite for all. */
export function roomToKeep(bytes: number): number {
  const ofSmall = bytes / (limits.journalFullShare - 2 * limits.snapshotJournalShare);
  const ofLarge = (bytes + 2 * limits.baseSpacingBytesMin) / limits.journalFullShare;
  return Math.ceil(Math.min(ofSmall, ofLarge));
}
