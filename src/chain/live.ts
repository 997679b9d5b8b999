// Which segments make up the log: found by listing, never by counting. A segment is live once its `Opened` stands. The
// log ends in the live segment with the highest number; each live segment names the one that it continues.

import { JournalDamagedError } from "../errors.ts";
import type { Journal, Segment } from "./journal.ts";
import { decodeRecord, type Opened } from "./records.ts";
import type { LiveSegment } from "./replay.ts";

export interface Listing {
  /** All that exist, ascending. */
  readonly numbers: readonly number[];
  /** The live one with the highest number. */
  readonly live: LiveSegment | undefined;
}

/** @throws UnreachableError */
export async function findLive(journal: Journal): Promise<Listing> {
  const numbers = await journal.list();
  for (const number of [...numbers].reverse()) {
    const live = await liveSegment(journal.segment(number));
    if (live !== undefined) return { numbers, live };
  }
  return { numbers, live: undefined };
}

/** Undefined when the segment does not exist or is not open. @throws UnreachableError */
export async function liveSegment(segment: Segment): Promise<LiveSegment | undefined> {
  const claimant = await claimantOf(segment);
  const found = await readOr(() => segment.opened(), undefined);
  if (found === undefined) return undefined;
  const opened = openedIn(found.bytes, segment.number, claimant);
  if (opened !== undefined) return { number: segment.number, opened, position: found.position };
  return await scanForOpened(segment, claimant);
}

/** The session that claimed a segment: undefined when its first record is not there or is no claim.
 *  @throws UnreachableError */
export async function claimantOf(segment: Segment): Promise<string | undefined> {
  const first = await readOr(() => segment.read(1), undefined);
  const claim = first === undefined ? undefined : decodeRecord(first.bytes);
  return claim?.kind === "claim" && claim.segment === segment.number ? claim.life : undefined;
}

/** The segments of the log up to `live`, each continuing the one before it. @param isFirst where the path begins; it
 *  also begins where a segment continues no other
 *  @throws UnreachableError; JournalDamagedError when a segment in between is missing */
export async function pathTo(
  journal: Journal,
  live: LiveSegment,
  isFirst: (segment: LiveSegment) => boolean,
): Promise<readonly [LiveSegment, ...LiveSegment[]]> {
  const path: [LiveSegment, ...LiveSegment[]] = [live];
  for (let first = live; !isFirst(first) && first.opened.previous !== undefined; ) {
    const { segment } = first.opened.previous;
    const before = await liveSegment(journal.segment(segment));
    if (before === undefined)
      throw new JournalDamagedError(
        `segment ${segment} is missing, which segment ${first.number} continues: restore the journal's storage`,
      );
    path.unshift(before);
    first = before;
  }
  return path;
}

/** A foreign record was published in the place of the writer's `Opened`: the writer's is looked for. */
async function scanForOpened(
  segment: Segment,
  claimant: string | undefined,
): Promise<LiveSegment | undefined> {
  try {
    for await (const { position, bytes } of segment.replay(1)) {
      const opened = openedIn(bytes, segment.number, claimant);
      if (opened !== undefined) return { number: segment.number, opened, position };
    }
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
  }
  return undefined;
}

function openedIn(bytes: Uint8Array, number: number, claimant: string | undefined): Opened | undefined {
  const record = decodeRecord(bytes);
  if (record?.kind !== "opened" || record.segment !== number) return undefined;
  return claimant === undefined || record.life === claimant ? record : undefined;
}

async function readOr<Read>(read: () => Promise<Read>, otherwise: Read): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof JournalDamagedError) return otherwise; // a record that cannot be read is none
    throw error;
  }
}
