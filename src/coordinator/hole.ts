// Where a journal that lost records within is whole again.

import type { Journal } from "../journal/journal.ts";
import { limits } from "../limits.ts";

/** The first record from which on all are there up to `lastSeq`, as far as is looked: reads backwards, up to
 *  `limits.holeScanRecordsMax`. `lastSeq + 1` when the last one itself is gone.
 *  @throws UnreachableError, JournalDamagedError */
export async function firstSeqBehindHoles(journal: Journal, lastSeq: number): Promise<number> {
  const lowestSeq = Math.max(1, lastSeq - limits.holeScanRecordsMax);
  for (let seq = lastSeq; seq >= lowestSeq; seq -= 1)
    if ((await journal.read(seq)) === undefined) return seq + 1;
  return lowestSeq;
}
