// Reads a segment past its damage: every readable record, and where a stretch of records cannot be read. For copies and
// reports of a damaged journal. Not here: the log, which ends at damage (log.ts).

import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { SegmentReader, SegmentRecord } from "./journal.ts";
import { noSegmentError, withoutRemedy } from "./journal-errors.ts";

/** Records that cannot be read, from the first to the last position. */
export interface DamagedRecords {
  readonly position: number;
  readonly lastPosition: number;
  /** A sentence for people. */
  readonly damage: string;
}

/** From the first record to the present end. @throws UnreachableError; JournalDamagedError if the segment is gone */
export async function* recordsAroundDamage(
  segment: SegmentReader,
): AsyncGenerator<SegmentRecord | DamagedRecords> {
  const end = await segment.end();
  if (end === undefined) throw noSegmentError(segment.number);
  for (let from = 1, times = 0; from <= end.position; ) {
    try {
      for await (const record of segment.replay(from, { until: end.position })) {
        yield record;
        from = record.position + 1;
      }
    } catch (error) {
      const isDamage = error instanceof JournalDamagedError && (await segment.end()) !== undefined;
      if (!isDamage) throw error;
      times += 1;
      const lastPosition = times > limits.salvagedGapsMax ? end.position : from;
      yield { position: from, lastPosition, damage: withoutRemedy(error.message) };
      from = lastPosition + 1;
    }
  }
}
