// The final log of batches, put together from all records that were seen in any segment: from the last batch that has a
// whole chain behind it back to the first, by hashes. Where a store was damaged, a batch is found as a copy in the next
// segment, or in a witness's memory, or on the wire, on its way to a server that did not keep it. The chain is the
// same.
//
// A leader that takes the lead again commits its batches in flight with a base, and some of them were never sent. The
// record that opens such a segment names their hashes, and their events were published: both make up the batch.

import { batchIndex, instant, type Term } from "../../src/ids.ts";
import { type Batch, decodeRecord, encodeBatch, hashOf, type Opened } from "../../src/journal/records.ts";
import type { LineRecord } from "../../src/sim/history/committed-log.ts";
import type { Event } from "../../src/state/event.ts";

/** Of records in a row that stand on nothing that was seen: void ones of a rival. More of them say that something in
 *  between was not seen, and a line that ends before it would contradict what was rightly told. */
const VOID_MAX = 8;

/** A batch as its leader published it: events of one subject at a time. */
export interface PublishedBatch {
  readonly term: number;
  readonly at: number;
  readonly events: readonly Event[];
}

export interface Unseen {
  /** What opened segments, as far as it was seen. */
  readonly opened: readonly Opened[];
  readonly publishedByIdx: ReadonlyMap<number, PublishedBatch>;
}

/** @param seen records in order of sight, those that stand in the log at the end last
 *  @param sent batches that somebody sent to the journal, whatever became of them: only those count that a record which
 *  was seen stands on
 *  @param unseen what is known of batches that were never sent
 *  @throws Error when no record has a whole chain behind it */
export function committedLine(
  seen: readonly LineRecord[],
  sent: readonly Uint8Array[] = [],
  unseen: Unseen = { opened: [], publishedByIdx: new Map() },
): LineRecord[] {
  const batchByHash = new Map<string, KnownBatch>();
  for (const batch of unseen.opened.flatMap((opened) => unsentBatches(opened, unseen)))
    batchByHash.set(batch.hash, batch);
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
  readonly hash: string;
}

/** The batches whose hashes a record names that opens a segment, as far as their events were published. */
function unsentBatches({ tail, recent, life, journal }: Opened, { publishedByIdx }: Unseen): KnownBatch[] {
  return recent.slice(1).flatMap((hash, at) => {
    const idx = batchIndex(tail.idx - (recent.length - 2 - at));
    const published = publishedByIdx.get(idx);
    if (published === undefined) return [];
    const header = {
      ...{ journal, life, idx, prev: recent[at] ?? "" },
      ...{ term: published.term as Term, at: instant(published.at) },
    };
    const events = [...published.events].sort((one, other) => placeInLife(one) - placeInLife(other));
    const bytes = encodeBatch(
      header,
      events.map((event) => JSON.stringify(event)),
    );
    return [{ batch: { kind: "batch", ...header, events }, bytes, hash } as const];
  });
}

const firstInLife: ReadonlySet<Event["type"]> = new Set(["TaskSubmitted", "TaskRetried", "TaskReleased"]);

/** Events of one task in one batch, in order: it is submitted, assigned, and that attempt ends. */
function placeInLife(event: Event): number {
  if (firstInLife.has(event.type)) return 0;
  if (!("attempt" in event) || typeof event.attempt !== "number") return Number.MAX_SAFE_INTEGER;
  return event.type === "TaskAssigned" ? event.attempt : event.attempt + 0.5;
}

/** @returns its hash; undefined of what is no batch */
function note(bytes: Uint8Array, batchByHash: Map<string, KnownBatch>): string | undefined {
  const batch = decodeRecord(bytes);
  if (batch?.kind !== "batch") return undefined;
  const hash = hashOf(bytes);
  batchByHash.set(hash, { batch, bytes, hash });
  return hash;
}

function chainTo(last: string, batchByHash: ReadonlyMap<string, KnownBatch>): LineRecord[] | undefined {
  const line: LineRecord[] = [];
  for (let hash = last; hash !== ""; ) {
    const found = batchByHash.get(hash);
    if (found === undefined) return undefined;
    line.push({ bytes: found.bytes, hash });
    hash = found.batch.prev;
  }
  return line.reverse();
}
