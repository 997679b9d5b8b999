// What a segment holds at a position. All checks of another session's or an own record ask here:
//
//   inspect       whether the segment still holds the last record that a coordinator read or wrote
//   findAt        what a refused append of a writer meets in its position
//   claimantOf    which session may write the segment
//   recordAt      the record itself
//
// Not here: which batches belong to the log (replay.ts).

import { JournalDamagedError } from "../errors.ts";
import type { SegmentReader } from "./journal.ts";
import { decodeRecord, hashOf, type LogRecord } from "./records.ts";

/** The last record of a segment that a coordinator read or wrote. */
export interface HeldPlace {
  readonly position: number;
  /** `hashOf` the record; empty if unknown, as in a segment just entered. */
  readonly recordHash: string;
}

export type Inspection =
  /** The segment ends with the held record. */
  | "same"
  /** More records follow the held record. */
  | "longer"
  /** The segment ends before the held record: the storage lost the end. */
  | "shorter"
  /** The segment has a different record at the held position. */
  | "replaced"
  /** Records are missing, or the held record is unreadable. */
  | "damaged"
  /** The segment does not exist. */
  | "missing";

export interface InspectedSegment {
  readonly found: Inspection;
  readonly isSealed: boolean;
}

/** @throws UnreachableError */
export async function inspect(segment: SegmentReader, held: HeldPlace): Promise<InspectedSegment> {
  const end = await segment.end();
  if (end === undefined) return { found: "missing", isSealed: false };
  const { position, isSealed, missing } = end;
  const found = (what: Inspection) => ({ found: what, isSealed });
  if (position < held.position) return found("shorter");
  if (missing > 0) return found("damaged");
  const last = held.position === 0 ? "same" : await compareAt(segment, held);
  if (last !== "same") return found(last);
  return found(position === held.position ? "same" : "longer");
}

async function compareAt(segment: SegmentReader, { position, recordHash }: HeldPlace): Promise<Inspection> {
  const bytes = await bytesAt(segment, position);
  if (bytes === undefined) return "damaged";
  return recordHash === "" || hashOf(bytes) === recordHash ? "same" : "replaced";
}

/** What a writer finds in the position of its next record. */
export type Found =
  /** The record. */
  | "itself"
  /** A record that every reader passes over: a foreign record, or a superseded record of the writer. */
  | "passed-over"
  /** A different record of the writer's session. */
  | "different"
  /** No record, or an unreadable one: the segment lost records, or the server lags behind. */
  | "nothing"
  /** Another session claimed the segment: a power loss took the segment, and its number was claimed again. */
  | "rival"
  /** The segment begins without a readable claim. */
  | "unclaimed";

export interface Expected {
  readonly position: number;
  readonly bytes: Uint8Array;
  /** Id of the writer's session. */
  readonly session: string;
  /** Further records that the writer sent, and sends again behind a foreign record. */
  readonly resent?: readonly Uint8Array[];
}

/** Judges the record in the position of a refused append. @throws UnreachableError */
export async function findAt(
  segment: SegmentReader,
  { position, bytes, session, resent = [] }: Expected,
): Promise<Found> {
  const found = await bytesAt(segment, position);
  if (found === undefined) return "nothing";
  if (isSame(found, bytes)) return "itself";
  const isOwn = decodeRecord(found)?.session === session;
  if (isOwn && !resent.some((each) => isSame(each, found))) return "different";
  const claimant = position === 1 ? claimantIn(found, segment) : await claimantOf(segment);
  if (claimant === undefined) return "unclaimed";
  return claimant === session ? "passed-over" : "rival";
}

/** The session that claimed a segment. Undefined if the first record is missing, unreadable, or not a claim.
 *  @throws UnreachableError */
export async function claimantOf(segment: SegmentReader): Promise<string | undefined> {
  const bytes = await bytesAt(segment, 1);
  return bytes === undefined ? undefined : claimantIn(bytes, segment);
}

/** Undefined if the record is missing, unreadable or foreign. @throws UnreachableError */
export async function recordAt(segment: SegmentReader, position: number): Promise<LogRecord | undefined> {
  const bytes = await bytesAt(segment, position);
  return bytes === undefined ? undefined : decodeRecord(bytes);
}

/** Undefined if the record is missing or unreadable. @throws UnreachableError */
async function bytesAt(segment: SegmentReader, position: number): Promise<Uint8Array | undefined> {
  try {
    return (await segment.read(position))?.bytes;
  } catch (error) {
    if (error instanceof JournalDamagedError) return undefined;
    throw error;
  }
}

function claimantIn(first: Uint8Array, { number }: SegmentReader): string | undefined {
  const claim = decodeRecord(first);
  return claim?.kind === "claim" && claim.segment === number ? claim.session : undefined;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
