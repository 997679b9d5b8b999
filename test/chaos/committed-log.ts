// The final log of batches, assembled by hashes from all observed records of all segments: from the last batch
// with a whole chain back to the first. After damage to a store, a batch may come from a copy in the next
// segment or from a witness's memory. It may also come from the wire, on its way to a server that lost it. The
// chain is the same.
//
// A leader that takes the lead again commits its batches in flight with a base, and some batches were never
// sent. The `Opened` record of the segment has their hashes, and their events were published: together they
// give the batch.

import { batchIndex, instant, type Term } from "../../src/ids.ts";
import { type Batch, decodeRecord, encodeBatch, hashOf, type Opened } from "../../src/journal/records.ts";
import type { LogRecord } from "../../src/sim/history/committed-log.ts";
import type { Event } from "../../src/state/event.ts";

/** Maximum number of consecutive records without an observed predecessor: superseded records of a rival. More
 *  records show that an observation is missing, and a log that ended earlier would contradict correct
 *  acknowledgements. */
const VOID_MAX = 8;

/** A batch as published by its leader: events of one subject at a time. */
export interface PublishedBatch {
  readonly term: number;
  readonly at: number;
  readonly events: readonly Event[];
}

export interface Unseen {
  /** Observed records that opened segments. */
  readonly opened: readonly Opened[];
  readonly publishedByIdx: ReadonlyMap<number, PublishedBatch>;
}

/** @param seen records in order of observation, records of the final log last
 *  @param sent batches sent to the journal, with any outcome; only predecessors of observed records count
 *  @param unseen known data of batches that were never sent
 *  @throws Error when no record has a whole chain */
export function committedLog(
  seen: readonly LogRecord[],
  sent: readonly Uint8Array[] = [],
  unseen: Unseen = { opened: [], publishedByIdx: new Map() },
): LogRecord[] {
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

/** The batches named by the hashes of an `Opened` record, as far as their events were published. */
function unsentBatches({ tail, recent, session, journal }: Opened, { publishedByIdx }: Unseen): KnownBatch[] {
  return recent.slice(1).flatMap((hash, at) => {
    const idx = batchIndex(tail.idx - (recent.length - 2 - at));
    const published = publishedByIdx.get(idx);
    if (published === undefined) return [];
    const header = {
      ...{ journal, session, idx, prev: recent[at] ?? "" },
      ...{ term: published.term as Term, at: instant(published.at) },
    };
    const events = [...published.events].sort((one, other) => stageOf(one) - stageOf(other));
    const bytes = encodeBatch(
      header,
      events.map((event) => JSON.stringify(event)),
    );
    return [{ batch: { kind: "batch", ...header, events }, bytes, hash } as const];
  });
}

const firstOfTask: ReadonlySet<Event["type"]> = new Set([
  "AgentJoined",
  "TaskSubmitted",
  "TaskRetried",
  "TaskReleased",
  "TaskRescheduled",
]);

/** Order of a task's events within a batch: submission, assignment, end of the attempt. */
function stageOf(event: Event): number {
  if (firstOfTask.has(event.type)) return 0;
  if (!("attempt" in event) || typeof event.attempt !== "number") return Number.MAX_SAFE_INTEGER;
  return event.type === "TaskAssigned" ? event.attempt : event.attempt + 0.5;
}

/** @returns the hash; undefined for a record without a batch */
function note(bytes: Uint8Array, batchByHash: Map<string, KnownBatch>): string | undefined {
  const batch = decodeRecord(bytes);
  if (batch?.kind !== "batch") return undefined;
  const hash = hashOf(bytes);
  batchByHash.set(hash, { batch, bytes, hash });
  return hash;
}

function chainTo(last: string, batchByHash: ReadonlyMap<string, KnownBatch>): LogRecord[] | undefined {
  const line: LogRecord[] = [];
  for (let hash = last; hash !== ""; ) {
    const found = batchByHash.get(hash);
    if (found === undefined) return undefined;
    line.push({ bytes: found.bytes, hash });
    hash = found.batch.prev;
  }
  return line.reverse();
}
