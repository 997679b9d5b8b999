// The one question about whose records a segment holds: does it still hold what was read or written there?

import { JournalDamagedError } from "../errors.ts";
import type { SegmentReader } from "./journal.ts";
import { hashOf } from "./records.ts";

/** What a coordinator read or wrote last in a segment. */
export interface HeldPlace {
  readonly position: number;
  /** `hashOf` the record there; empty when it is not known, as in a segment that was just entered. */
  readonly recordHash: string;
}

export type Inspection =
  /** It ends at the held record. */
  | "same"
  /** It goes on behind the held record. */
  | "longer"
  /** It ends before the held record: the storage lost its end. */
  | "shorter"
  /** Another record stands at the held position. */
  | "replaced"
  /** Records are missing within, or the held record cannot be read. */
  | "damaged"
  /** There is no such segment. */
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
