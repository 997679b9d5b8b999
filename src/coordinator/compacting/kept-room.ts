// The journal's room for the audit, and the room for a given audit. Above `limits.journalFullShare` of its room the
// journal refuses tasks, and segments are removed only behind a new base. So the room for the batches between two
// bases is left free twice. Batches take the first part until the next base is due, and the second while it is made.

import { limits } from "../../limits.ts";
import { baseSpacingBytes } from "./newest-base.ts";

/** The most of the audit that is kept. @param bytesMax the journal's room; undefined without a bound
 *  @param spacingBytes batches between two bases. Default: as of a small state */
export function keptBytesMax(
  bytesMax = Number.POSITIVE_INFINITY,
  spacingBytes = baseSpacingBytes(undefined, { bytesMax }),
): number {
  return Math.max(0, Math.floor(bytesMax * limits.journalFullShare - 2 * spacingBytes));
}

/** The room of a journal: the default, or more for a larger audit.
 *  @param keptBytes the size of the audit to keep; infinite if none is set */
export function wantedRoom(keptBytes: number): number {
  const room = roomToKeep(keptBytes);
  return Number.isSafeInteger(room) ? Math.max(limits.journalBytesMax, room) : limits.journalBytesMax;
}

/** The room for an audit of so many bytes; infinite for all. */
export function roomToKeep(bytes: number): number {
  const ofSmall = bytes / (limits.journalFullShare - 2 * limits.baseJournalShare);
  const ofLarge = (bytes + 2 * limits.baseSpacingBytesMin) / limits.journalFullShare;
  return Math.ceil(Math.min(ofSmall, ofLarge));
}
