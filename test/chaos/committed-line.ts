// The final log of batches, put together from all records that were seen in any segment: from the last batch that has a
// whole chain behind it back to the first, by hashes. Where a store was damaged, a batch is found as a copy in the next
// segment, or in a witness's memory, or on the wire, on its way to a server that did not keep it. The chain is the
// same.

import { type Batch, decodeRecord, hashOf } from "../../src/journal/records.ts";
import type { LineRecord } from "../../src/sim/history/committed-log.ts";

/** Of records in a row that stand on nothing that was seen: void ones of a rival. More of them say that something in
 *  between was not seen, and a line that ends before it would contradict what was rightly told. */
const VOID_MAX = 8;

/** @param seen records in order of sight, those that stand in the log at the end last
 *  @param sent batches that somebody sent to the journal, whatever became of them: only those count that a record which
 *  was seen stands on
 *  @throws Error when no record has a whole chain behind it */
export function committedLine(seen: readonly LineRecord[], sent: readonly Uint8Array[] = []): LineRecord[] {
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
  const batch = decodeRecord(bytes);
  if (batch?.kind !== "batch") return undefined;
  const hash = hashOf(bytes);
  batchByHash.set(hash, { batch, bytes });
  return hash;
}

function chainTo(last: string, batchByHash: ReadonlyMap<string, KnownBatch>): LineRecord[] | undefined {
  const line: LineRecord[] = [];
  for (let hash = last; hash !== ""; ) {
    const found = batchByHash.get(hash);
    if (found === undefined) return undefined;
    line.push({ bytes: found.bytes });
    hash = found.batch.prev;
  }
  return line.reverse();
}
