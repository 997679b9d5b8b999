// Whether a batch still stands where it stood: asked right before a purge, for where the journal lost its end another
// may stand there. And whether a batch stands in a place at all: whoever waits for another's deeds asks that, for what
// somebody else writes is no deed.

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

/** Whether a batch of a journal stands in a place; undefined where nothing is found there, or nobody answers: whoever
 *  reads on says why.
 *  @param of the journal; "" before its first batch: any */
export async function standsBatch(
  seq: number,
  of: string,
  journal: Pick<Journal, "read">,
): Promise<boolean | undefined> {
  const record = await journal.read(seq).catch(() => undefined);
  if (record === undefined) return undefined;
  const batch = decodeBatch(record.bytes);
  return batch !== undefined && (of === "" || batch.journal === of);
}
