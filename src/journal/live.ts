// Which segments make up the log: found by listing, never by counting. A segment is live once its `Opened` stands.
// The log ends in the live segment with the highest number; each live segment names the one that it continues.

import { JournalDamagedError } from "../errors.ts";
import type { JournalReader, SegmentReader, SegmentRecord } from "./journal.ts";
import { decodeRecord, hashOf, type LogRecord } from "./records.ts";
import type { LiveSegment } from "./replay.ts";

export interface Listing {
  /** All that exist, ascending. */
  readonly numbers: readonly number[];
  /** The live one with the highest number. */
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

/** Undefined when the segment does not exist or is not open. @throws UnreachableError */
export async function liveSegment(segment: SegmentReader): Promise<LiveSegment | undefined> {
  const claimant = await claimantOf(segment);
  const found = await readOr(() => segment.opened(), undefined);
  const live = found === undefined ? undefined : liveIn(found, segment, claimant);
  if (live !== undefined) return live;
  // A foreign record may stand in the place of the writer's `Opened`, and where records are missing the storage may not
  // find what it has.
  const mayBeOpen = found !== undefined || ((await segment.end())?.missing ?? 0) > 0;
  return mayBeOpen ? await scanForOpened(segment, claimant) : undefined;
}

/** The session that claimed a segment: undefined when its first record is not there or is no claim.
 *  @throws UnreachableError */
export async function claimantOf(segment: SegmentReader): Promise<string | undefined> {
  const claim = await recordIn(segment, 1);
  return claim?.kind === "claim" && claim.segment === segment.number ? claim.life : undefined;
}

/** The segments of the log up to `live`, each continuing the one before it. @param isFirst where the path begins; it
 *  also begins where a segment continues no other
 *  @throws UnreachableError; JournalDamagedError when a segment in between is missing */
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

/** As `liveSegment`, and undefined for sure: a server that takes over may not find an `Opened` that is there, so the
 *  segment is read to its end. @throws UnreachableError */
export async function openSegment(segment: SegmentReader): Promise<LiveSegment | undefined> {
  return (await liveSegment(segment)) ?? (await scanForOpened(segment, await claimantOf(segment)));
}

/** The last batch of the claimant in a segment whose `Opened` is not found; 0 where there is none. Read from the end,
 *  because records may be missing. Behind a base or a claim is no batch of the claimant. An unreadable claim may be of
 *  any session. A segment that begins with a foreign record has no claimant.
 *  @throws UnreachableError */
export async function lastBatchIdxOf(segment: SegmentReader): Promise<number> {
  const first = await recordIn(segment, 1);
  if (first !== undefined && first.kind !== "claim") return 0;
  const end = await segment.end();
  for (let position = end?.position ?? 0; position > 0; position -= 1) {
    const record = await recordIn(segment, position);
    if (record === undefined || (first !== undefined && record.life !== first.life)) continue;
    if (record.kind === "batch") return record.idx;
    if (record.kind !== "closing") return 0;
  }
  return 0;
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

/** The segment that a record opens; undefined when it opens none. @param claimant the only session that may;
 *  default: any */
export function liveIn(
  { bytes, position }: SegmentRecord,
  { number }: Pick<SegmentReader, "number">,
  claimant: string | undefined,
): LiveSegment | undefined {
  const opened = decodeRecord(bytes);
  if (opened?.kind !== "opened" || opened.segment !== number) return undefined;
  if (claimant !== undefined && opened.life !== claimant) return undefined;
  return { number, opened, openedHash: hashOf(bytes), position };
}

/** Undefined when there is none, or none that can be read. @throws UnreachableError */
async function recordIn(segment: SegmentReader, position: number): Promise<LogRecord | undefined> {
  const found = await readOr(() => segment.read(position), undefined);
  return found === undefined ? undefined : decodeRecord(found.bytes);
}

async function readOr<Read>(read: () => Promise<Read>, otherwise: Read): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof JournalDamagedError) return otherwise; // a record that cannot be read is none
    throw error;
  }
}
