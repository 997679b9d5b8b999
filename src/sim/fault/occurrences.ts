// The interesting states that a run reached, counted: a long run that never reached one of them tests less than it
// says, and is red.

export const occurrenceNames = [
  "ambiguous-append-landed",
  "ambiguous-append-not-landed",
  "ambiguous-append-foreign",
  "refused-with-an-uncommitted-number",
  "stale-read",
  "dead-record",
  "tail-cut",
  "tail-refilled",
  "begun-from-a-snapshot",
  "journal-purged",
  "storage-full",
  "term-begun-by-another",
  "term-handed-over",
  "deposed",
  "deposed-with-batches-in-flight",
  "leader-killed-with-batches-in-flight",
  "full-agent-at-fail-over",
  "unconfirmed-assignment-at-fail-over",
  "stale-result",
  "agent-lost",
  "agent-fenced",
  "agent-suspended",
  "attempt-timed-out",
  "poison-dead-lettered",
  "task-expired",
  "task-cancelled",
  "slot-waited-for",
  "budget-exceeded",
  "submit-repeated-and-known",
  "submit-unknown",
] as const;
export type Occurrence = (typeof occurrenceNames)[number];

export class Occurrences {
  readonly #countByName = new Map<Occurrence, number>();

  note(name: Occurrence): void {
    this.#countByName.set(name, (this.#countByName.get(name) ?? 0) + 1);
  }

  counts(): Partial<Record<Occurrence, number>> {
    return Object.fromEntries(this.#countByName) as Partial<Record<Occurrence, number>>;
  }
}
