// Where a journal that lost records within is whole again.

import type { Clock } from "../../clock.ts";
import type { Journal } from "../../journal/journal.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";

export interface HoleDeps {
  readonly journal: Pick<Journal, "read">;
  readonly clock: Pick<Clock, "after">;
}

/** The first record from which on all are there up to `lastSeq`: `lastSeq + 1` when the last one itself is gone;
 *  undefined when all from `fromSeq` on are there. Reads backwards, and asks for what is not found once more, after
 *  `limits.journalLookMs`: a server that just took over may not know it yet.
 *  @throws UnreachableError, JournalDamagedError */
export async function firstSeqBehindHoles(
  { fromSeq, lastSeq }: { readonly fromSeq: number; readonly lastSeq: number },
  { journal, clock }: HoleDeps,
): Promise<number | undefined> {
  for (let seq = lastSeq; seq >= Math.max(fromSeq, 1); seq -= 1) {
    if ((await journal.read(seq)) !== undefined) continue;
    await pause(clock, limits.journalLookMs);
    if ((await journal.read(seq)) === undefined) return seq + 1;
  }
  return undefined;
}
