// Whether a batch still stands where it stood: asked right before a purge, for where the journal lost its end another
// may stand there.

import type { BatchIndex } from "../ids.ts";
import { decodeBatch, hashOf } from "./batch.ts";
import type { BatchPlaces } from "./batch-places.ts";
import type { Journal } from "./journal.ts";

/** Whether a batch is found where it stood, as far as its hash is known.
 *  @throws UnreachableError, JournalDamagedError */
export async function isStanding(
  idx: BatchIndex,
  places: BatchPlaces,
  journal: Pick<Journal, "read">,
): Promise<boolean> {
  const seq = places.seqOf(idx);
  const record = seq === undefined ? undefined : await journal.read(seq);
  if (record === undefined) return false;
  return places.isBatch(idx, hashOf(record.bytes)) ?? decodeBatch(record.bytes)?.idx === idx;
}
