// Whose line of batches a journal ends with that lost its end: that of whoever asks, or another's, who went on from
// there meanwhile. Asked before a state is saved that is to stand for what is lost (lost-end.ts, rescue.ts).
//
// The rule: it is ours where one of our batches stands where it stood, and nothing but dead records behind it. Where
// something else stands in a batch's place, whoever stands by takes that for another's line, for it may be the batch of
// one. Who leads goes on behind it unless it is such a batch: whoever else may write there does not wait for a leader
// to save its state. Where all that is left is dead records, and our batches before them were purged, it is ours to
// whoever stands by: nobody purges what another's line took the place of. And where nothing proves whose line it is for
// long, for what ours began with here is lost as well, who leads goes on.

import { type Batch, decodeBatch, hashOf } from "../../journal/batch.ts";
import type { Journal } from "../../journal/journal.ts";
import { type ChainTail, deathOf, type Folded, isBehindMore, stoodThere } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";

/** `unknown`: a record is not found, which proves nothing: its server may know less than it holds. */
export type LineOwner = "ours" | "another" | "unknown";

export interface LineEndDeps {
  readonly journal: Pick<Journal, "read" | "position">;
  /** Whether dead records may stand where batches of ours stood; and what proves nothing be ours. */
  readonly mayReplace: boolean;
  /** Whether what is not found is lost. */
  readonly mayLack?: boolean;
}

/** Reads backwards from `lastSeq`, at most `limits.holeScanRecordsMax` records.
 *  @throws UnreachableError, JournalDamagedError */
export async function ownerOfEnd(
  lastSeq: number,
  folded: Pick<Folded, "places" | "position">,
  { journal, mayReplace, mayLack = false }: LineEndDeps,
): Promise<LineOwner> {
  const behind: Batch[] = [];
  const lowestSeq = Math.max(1, lastSeq - limits.holeScanRecordsMax);
  const { firstSeq } = await journal.position();
  // Nothing stands at 0; and a server that is asked for that does not say so.
  for (let seq = lastSeq; seq >= lowestSeq; seq -= 1) {
    if (folded.places.lastUntil(seq) === undefined) break;
    if (!mayReplace && seq < Math.min(firstSeq, lastSeq)) return behind.length > 0 ? "another" : "ours";
    const record = await journal.read(seq);
    if (record === undefined && mayLack) continue;
    if (record === undefined) return "unknown";
    const batch = decodeBatch(record.bytes);
    if (batch !== undefined && stoodThere(record, folded)) {
      const tail = { ...batch, hash: hashOf(record.bytes) };
      return behind.some((each) => goesOn(each, tail)) ? "another" : "ours";
    }
    if (!mayReplace && folded.places.idxAt(seq) !== undefined) return "another";
    if (batch !== undefined) behind.push(batch);
  }
  if (!mayReplace || behind.length > 0) return "another";
  return mayLack ? "ours" : "unknown";
}

/** Whether somebody went on with it: behind that one, or behind what stood behind it. */
function goesOn(batch: Batch, tail: ChainTail): boolean {
  const death = deathOf(batch, tail);
  return death === undefined || (death === "broken-chain" && isBehindMore(batch, tail));
}
