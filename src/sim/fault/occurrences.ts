// The interesting states that a run reached, counted: a long run that never reached one of them tests less than it
// says, and is red.

import type { FaultKind } from "./fault.ts";

export const occurrenceNames = [
  "ambiguous-append-landed",
  "ambiguous-append-not-landed",
  "ambiguous-append-foreign",
  "refused-with-an-uncommitted-number",
  "stale-read",
  "dead-record",
  "term-begun-among-aliens",
  "tail-cut",
  "tail-refilled",
  "standby-left-behind",
  "hole-made",
  "hole-rescued",
  "begun-from-a-snapshot",
  "journal-purged",
  "snapshot-rotten",
  "storage-full",
  "storage-short",
  "purged-when-full",
  "blackout",
  "term-begun-by-another",
  "term-handed-over",
  "deaf-leader-stepped-down",
  "deposed",
  "deposed-with-batches-in-flight",
  "leader-killed-with-batches-in-flight",
  "full-agent-at-fail-over",
  "unconfirmed-assignment-at-fail-over",
  "standbys-racing",
  "election-sent-for-long",
  "called-a-duplicate-and-not-stored",
  "result-after-a-new-attempt",
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
  "term-begun-in-calm",
  "term-handed-over-in-calm",
  "agent-lost-in-calm",
] as const;
export type Occurrence = (typeof occurrenceNames)[number];

/** What the last that a seed does (probe.ts) brings about each time. */
const ofTheProbe: ReadonlySet<Occurrence> = new Set<Occurrence>([
  "term-begun-in-calm",
  "term-handed-over-in-calm",
  "agent-lost-in-calm",
]);

/** What brings an occurrence about, where without it no run has to reach it. */
const faultsBehind: Partial<Record<Occurrence, readonly FaultKind[]>> = {
  "ambiguous-append-landed": ["ack-lost"],
  "ambiguous-append-not-landed": ["append-dropped", "append-late", "journal-away", "cut"],
  "ambiguous-append-foreign": ["append-late", "cut", "false-refusal", "alien"],
  "refused-with-an-uncommitted-number": ["false-refusal"],
  "stale-read": ["stale-read"],
  "dead-record": ["alien"],
  "term-begun-among-aliens": ["alien", "crash", "pause"],
  "tail-cut": ["tail-cut"],
  "tail-refilled": ["tail-cut"],
  "standby-left-behind": ["left-behind"],
  "hole-made": ["hole"],
  "hole-rescued": ["hole"],
  "snapshot-rotten": ["snapshot-rots"],
  "storage-full": ["full"],
  "storage-short": ["bound"],
  "purged-when-full": ["bound"],
  "begun-from-a-snapshot": ["crash"],
  blackout: ["blackout"],
  "term-begun-by-another": ["crash", "pause"],
  "term-handed-over": ["transfer"],
  "deaf-leader-stepped-down": ["disconnect"],
  deposed: ["pause", "cut"],
  "deposed-with-batches-in-flight": ["pause", "cut"],
  "leader-killed-with-batches-in-flight": ["crash"],
  "full-agent-at-fail-over": ["crash", "pause"],
  "unconfirmed-assignment-at-fail-over": ["crash", "pause"],
  "standbys-racing": ["transfer"],
  "election-sent-for-long": ["full", "journal-away", "cut"],
  "called-a-duplicate-and-not-stored": ["false-duplicate"],
  "result-after-a-new-attempt": ["pause", "cut", "out-of-touch"],
  "agent-lost": ["crash"],
  "agent-fenced": ["twin"],
  "submit-repeated-and-known": ["crash", "loss", "cut"],
  "submit-unknown": ["crash", "full"],
  "term-begun-in-calm": ["crash"],
  "term-handed-over-in-calm": ["transfer"],
  "agent-lost-in-calm": ["crash"],
};

/** What a long run must have reached: whatever faults were left out can do no more. */
export function reachableWithout(without: readonly FaultKind[]): Occurrence[] {
  return occurrenceNames.filter(
    (name) => !(faultsBehind[name] ?? []).some((fault) => without.includes(fault)),
  );
}

export class Occurrences {
  readonly #countByName = new Map<Occurrence, number>();
  /** Whether nothing else counts any more: it has to come of the faults of a seed. */
  isProbing = false;

  note(name: Occurrence): void {
    if (this.isProbing && !ofTheProbe.has(name)) return;
    this.#countByName.set(name, (this.#countByName.get(name) ?? 0) + 1);
  }

  counts(): Partial<Record<Occurrence, number>> {
    return Object.fromEntries(this.#countByName) as Partial<Record<Occurrence, number>>;
  }
}
