// The final line of batches, put together from all records that anybody saw: from the last one that has a whole chain
// behind it back to the first, by hashes. Where a store was damaged, records are found under other sequences than they
// had, or only in a witness's memory, or nowhere but on the wire, on their way to a server that did not keep them; the
// chain is the same.

import { type Batch, decodeBatch, hashOf } from "../../src/journal/batch.ts";
import type { JournalRecord } from "../../src/journal/journal.ts";

/** Of records in a row that stand on nothing that was seen: void ones of a rival. More of them say that something in
 *  between was not seen, and a line that ends before it would contradict what was rightly told. */
const VOID_MAX = 8;

/** @param seen records in order of sight, those that stand in the log at the end last
 *  @param sent batches that somebody sent to the journal, whatever became of them: only those count that a record which
 *  was seen stands on
 *  @throws Error when no record has a whole chain behind it */
export function committedLine(
  seen: readonly JournalRecord[],
  sent: readonly Uint8Array[] = [],
): JournalRecord[] {
  const batchByHash = new Map<string, KnownBatch>();
  for (const bytes of sent) note(bytes, batchByHash);
  const hashes = seen.flatMap(({ bytes }) => note(bytes, batchByHash) ?? []);
  for (const hash of hashes.reverse().slice(0, VOID_MAX + 1)) {
    const line = chainTo(hash, batchByHash);
    if (line !== undefined) return line;
  }
  if (hashes.length === 0) return [];
  const newest = Math.min(VOID_MAX + 1, hashes.length);
  throw new Error(
    `of the newest ${newest} batches that were seen, none has a whole chain behind it: nothing can be judged`,
  );
}

interface KnownBatch {
  readonly batch: Batch;
  readonly bytes: Uint8Array;
}

/** @returns its hash; undefined of what is no batch */
function note(bytes: Uint8Array, batchByHash: Map<string, KnownBatch>): string | undefined {
  const batch = decodeBatch(bytes);
  if (batch === undefined) return undefined;
  const hash = hashOf(bytes);
  batchByHash.set(hash, { batch, bytes });
  return hash;
}

function chainTo(last: string, batchByHash: ReadonlyMap<string, KnownBatch>): JournalRecord[] | undefined {
  const line: JournalRecord[] = [];
  for (let hash = last; hash !== ""; ) {
    const found = batchByHash.get(hash);
    if (found === undefined) return undefined;
    line.push({ seq: found.batch.idx, bytes: found.bytes });
    hash = found.batch.prev;
  }
  return line.reverse();
}
