// Checks that a segment still holds the last record that a coordinator read or wrote.

import { JournalDamagedError } from "../errors.ts";
import type { SegmentReader } from "./journal.ts";
import { hashOf } from "./records.ts";

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
  const last = held.position === 0 ? "same" : await recordAt(segment, held);
  if (last !== "same") return found(last);
  return found(position === held.position ? "same" : "longer");
}

async function recordAt(segment: SegmentReader, { position, recordHash }: HeldPlace): Promise<Inspection> {
  try {
    const record = await segment.read(position);
    if (record === undefined) return "damaged";
    return recordHash === "" || hashOf(record.bytes) === recordHash ? "same" : "replaced";
  } catch (error) {
    if (error instanceof JournalDamagedError) return "damaged";
    throw error;
  }
}
