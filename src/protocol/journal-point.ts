// Up to where somebody knows the journal, as answers, announcements and acknowledgements say it. Not the place of a
// record in its stream (journal/journal.ts), nor where a fold stands (journal/replay.ts).

/** Batch `idx`, written or seen in `term`. */
export interface JournalPoint {
  readonly term: number;
  readonly idx: number;
}

export function isFurther(one: JournalPoint, other: JournalPoint): boolean {
  return one.term > other.term || (one.term === other.term && one.idx > other.idx);
}
