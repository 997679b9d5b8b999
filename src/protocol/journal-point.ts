// A point of the journal, from answers, heartbeats and acknowledgements. Not the position of a record in a stream
// (journal/journal.ts), nor the position of a replay (journal/replay.ts).

/** Batch `idx`, written or seen in `term`. */
export interface JournalPoint {
  readonly term: number;
  readonly idx: number;
}

export function isFurther(one: JournalPoint, other: JournalPoint): boolean {
  return one.term > other.term || (one.term === other.term && one.idx > other.idx);
}
