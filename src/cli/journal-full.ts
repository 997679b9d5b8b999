// Whether a journal is called full to whoever asks, and not only short of room.

import { isFull } from "../coordinator/journal-room.ts";
import type { JournalUsage } from "../journal/journal.ts";
import { limits } from "../limits.ts";

/** Whether the leader may lack room for its own records. In a small journal an election counts the whole reserve as no
 *  room (journal-room.ts), while the leader can still use most of the reserve. */
export function isCalledFull(usage: JournalUsage): boolean {
  const { bytes, bytesMax = Number.POSITIVE_INFINITY } = usage;
  return isFull(usage) && bytes > bytesMax * limits.journalUnassignedShare;
}
