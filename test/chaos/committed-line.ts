// The final line of batches, put together from all records that anybody saw: from the last one that has a whole chain
// behind it back to the first, by hashes. Where a store was damaged, records are found under other sequences than they
// had, or only in a witness's memory; the chain is the same.

import { type Batch, decodeBatch, hashOf } from "../../src/journal/batch.ts";
import type { JournalRecord } from "../../src/journal/journal.ts";

/** @param seen records in order of sight, those that stand in the log at the end last
 *  @throws Error when no record has a whole chain behind it */
export function committedLine(seen: readonly JournalRecord[]): JournalRecord[] {
  const batchByHash = new Map<string, { readonly batch: Batch; readonly bytes: Uint8Array }>();
  const hashes: string[] = [];
  for (const { bytes } of seen) {
    const batch = decodeBatch(bytes);
    if (batch === undefined) continue;
    const hash = hashOf(bytes);
    batchByHash.set(hash, { batch, bytes });
    hashes.push(hash);
  }
  for (const hash of hashes.reverse()) {
    const line = chainTo(hash, batchByHash);
    if (line !== undefined) return line;
  }
  if (hashes.length === 0) return [];
  throw new Error(`of ${hashes.length} batches that were seen, none has a whole chain behind it`);
}

function chainTo(
  last: string,
  batchByHash: ReadonlyMap<string, { readonly batch: Batch; readonly bytes: Uint8Array }>,
): JournalRecord[] | undefined {
  const line: JournalRecord[] = [];
  for (let hash = last; hash !== ""; ) {
    const found = batchByHash.get(hash);
    if (found === undefined) return undefined;
    line.push({ seq: found.batch.idx, bytes: found.bytes });
    hash = found.batch.prev;
  }
  return line.reverse();
}
