// Whether a journal is called full to whoever asks, and not only short of room.

import { isFull } from "../coordinator/journal-room.ts";
import type { JournalUsage } from "../journal/journal.ts";
import { limits } from "../limits.ts";

/** Whether its leader may have no room for its own records. Of a small journal an election counts all that is kept free
 *  of tasks as no room (journal-room.ts), though the leader still answers with most of it. */
export function isCalledFull(usage: JournalUsage): boolean {
  const { bytes, bytesMax = Number.POSITIVE_INFINITY } = usage;
  return isFull(usage) && bytes > bytesMax * limits.journalUnassignedShare;
}
