// What a record means that stands where the oldest batch in flight was expected. Reads nothing but what is given: what
// follows from it is for who asks (expected-place.ts).

import { type Batch, decodeBatch } from "../../journal/batch.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import { isSameBytes } from "../../journal/recent-records.ts";
import { type ChainTail, type DeadReason, deathOf, isBehindMore } from "../../journal/replay.ts";
import type { PendingBatch } from "./sends.ts";

export interface Expectation {
  /** What was expected there. */
  readonly oldest: PendingBatch;
  /** The last batch that was committed. */
  readonly tail: ChainTail;
  /** Others may have read what is in flight in a place that nobody can read any more, and have gone on behind it. */
  readonly mayBeHidden: boolean;
  /** Whether a batch of these bytes is in flight. */
  readonly isInFlight: (bytes: Uint8Array) => boolean;
}

/** `another-leads`: everything uncommitted is void. `another-line`: the journal went on differently from before what
 *  was committed. `another-of-the-term`: a fork. A reason of death: everybody skips it. */
export type Meaning = "ours" | DeadReason | "another-leads" | "another-line" | "another-of-the-term";

export function meaningOf({ bytes }: JournalRecord, expected: Expectation): Meaning {
  const { oldest, tail, mayBeHidden } = expected;
  if (isSameBytes(bytes, oldest.bytes)) return "ours";
  const rival = decodeBatch(bytes);
  if (rival === undefined) return "alien";
  const death = deathOf(rival, tail);
  // Of a later term the first record that is met continues the chain, or it continues another than ours…
  if (death === "broken-chain" && rival.term > oldest.term)
    return mayBeHidden ? "another-leads" : "another-line"; // …or what was read in a place that is lost
  if (death === "broken-chain" && isLedBehind(rival, bytes, expected)) return "another-leads";
  if (death !== undefined) return death;
  return rival.term === oldest.term && !oldest.startsTerm ? "another-of-the-term" : "another-leads";
}

/** Whether a candidate meets what a leader wrote behind batches that it has not read. */
function isLedBehind(rival: Batch, bytes: Uint8Array, { oldest, tail, isInFlight }: Expectation): boolean {
  return oldest.startsTerm && !isInFlight(bytes) && isBehindMore(rival, tail);
}
