// Which segments make up the log: found by listing, never by counting. A segment is live once its `Opened` is stored.
// The log ends in the live segment with the highest number. Each live segment names its predecessor.

import { JournalDamagedError } from "../errors.ts";
import { claimantOf, recordAt } from "./inspect.ts";
import type { JournalReader, SegmentReader, SegmentRecord } from "./journal.ts";
import { decodeRecord, hashOf } from "./records.ts";
import type { LiveSegment } from "./replay.ts";

export interface Listing {
  /** All existing segments, ascending. */
  readonly numbers: readonly number[];
  /** The live segment with the highest number. */
  readonly live: LiveSegment | undefined;
}

/** @throws UnreachableError */
export async function findLive(journal: JournalReader): Promise<Listing> {
  const numbers = await journal.list();
  for (const number of [...numbers].reverse()) {
    const live = await liveSegment(journal.segment(number));
    if (live !== undefined) return { numbers, live };
  }
  return { numbers, live: undefined };
}

/** Undefined if the segment does not exist or is not live. @throws UnreachableError */
export async function liveSegment(segment: SegmentReader): Promise<LiveSegment | undefined> {
  const claimant = await claimantOf(segment);
  const found = await readableOpened(segment);
  const live = found === undefined ? undefined : liveIn(found, segment, claimant);
  if (live !== undefined) return live;
  // The storage may have returned a foreign record as the `Opened`, or not find the `Opened` because records are
  // missing.
  const mayBeOpen = found !== undefined || ((await segment.end())?.missing ?? 0) > 0;
  return mayBeOpen ? await scanForOpened(segment, claimant) : undefined;
}

/** The chain of segments up to `live`, oldest first. The chain begins with the newest segment that passes `isFirst`, or
 *  with a segment without a predecessor.
 *  @throws UnreachableError; JournalDamagedError if a segment of the chain is missing */
export async function pathTo(
  journal: JournalReader,
  live: LiveSegment,
  isFirst: (segment: LiveSegment) => boolean,
): Promise<readonly [LiveSegment, ...LiveSegment[]]> {
  const path: [LiveSegment, ...LiveSegment[]] = [live];
  for (let first = live; !isFirst(first) && first.opened.previous !== undefined; ) {
    const { segment } = first.opened.previous;
    const before = await openSegment(journal.segment(segment));
    if (before === undefined)
      throw new JournalDamagedError(
        `segment ${segment} is missing, which segment ${first.number} continues: restore the journal's storage`,
      );
    path.unshift(before);
    first = before;
  }
  return path;
}

/** As `liveSegment`, but undefined is certain. During a failover the server may not find a stored `Opened`, so the
 *  segment is then read to the end. @throws UnreachableError */
export async function openSegment(segment: SegmentReader): Promise<LiveSegment | undefined> {
  return (await liveSegment(segment)) ?? (await scanForOpened(segment, await claimantOf(segment)));
}

/** Index of the claimant's last batch in a segment whose `Opened` is not found; 0 if no batch is found.
 *  The search runs backwards, because records may be missing, and stops at the claimant's claim, base or `Opened`.
 *  If the claim is unreadable, records of every session count. A segment that begins with a foreign record has no
 *  claimant. @throws UnreachableError */
export async function lastBatchIdxOf(segment: SegmentReader): Promise<number> {
  const first = await recordAt(segment, 1);
  if (first !== undefined && first.kind !== "claim") return 0;
  const end = await segment.end();
  for (let position = end?.position ?? 0; position > 0; position -= 1) {
    const record = await recordAt(segment, position);
    if (record === undefined || (first !== undefined && record.session !== first.session)) continue;
    if (record.kind === "batch") return record.idx;
    if (record.kind !== "closing") return 0;
  }
  return 0;
}

/** Undefined if the storage finds no record marked as `Opened`, or an unreadable one. @throws UnreachableError */
async function readableOpened(segment: SegmentReader): Promise<SegmentRecord | undefined> {
  try {
    return await segment.opened();
  } catch (error) {
    if (error instanceof JournalDamagedError) return undefined;
    throw error;
  }
}

async function scanForOpened(
  segment: SegmentReader,
  claimant: string | undefined,
): Promise<LiveSegment | undefined> {
  try {
    for await (const record of segment.replay(1)) {
      const live = liveIn(record, segment, claimant);
      if (live !== undefined) return live;
    }
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
  }
  return undefined;
}

/** The segment opened by a record; undefined if the record opens no segment. @param claimant the session that may open
 *  the segment; undefined permits every session */
export function liveIn(
  { bytes, position }: SegmentRecord,
  { number }: Pick<SegmentReader, "number">,
  claimant: string | undefined,
): LiveSegment | undefined {
  const opened = decodeRecord(bytes);
  if (opened?.kind !== "opened" || opened.segment !== number) return undefined;
  if (claimant !== undefined && opened.session !== claimant) return undefined;
  return { number, opened, openedHash: hashOf(bytes), position };
}
