// Counts the interesting states of a run. A long run that never reached one of the states tests less than promised, and
// fails.

import type { FaultKind } from "./fault.ts";

export const occurrenceNames = [
  "ambiguous-append-landed",
  "ambiguous-append-not-landed",
  "ambiguous-append-foreign",
  "refused-with-an-uncommitted-number",
  "stale-read",
  "not-found-though-there",
  "reader-dead",
  "skipped-record",
  "term-begun-among-foreign",
  "tail-cut",
  "segment-lost",
  "gap-made",
  "bit-flipped",
  "segment-renewed",
  "committed-by-a-base",
  "segment-changed",
  "begun-from-a-base",
  "journal-trimmed",
  "storage-full",
  "blackout",
  "term-begun-by-another",
  "isolated-leader-stepped-down",
  "deposed",
  "deposed-with-batches-in-flight",
  "leader-killed-with-batches-in-flight",
  "full-agent-at-fail-over",
  "unconfirmed-assignment-at-fail-over",
  "called-a-duplicate-and-not-stored",
  "result-after-a-new-attempt",
  "agent-lost",
  "agent-fenced",
  "session-forbidden",
  "agent-forbidden",
  "agent-suspended",
  "hold-placed",
  "hold-probed",
  "resource-refused-in-a-row",
  "agent-without-labels",
  "agent-of-an-affinity",
  "attempt-timed-out",
  "attempt-revoked",
  "task-rescheduled",
  "poison-dead-lettered",
  "task-expired",
  "task-cancelled",
  "task-retried",
  "slot-waited-for",
  "slot-taken-back-for-idleness",
  "slot-refused-late",
  "slot-charged-late",
  "budget-exceeded",
  "submit-repeated-and-known",
  "submit-unknown",
  "term-begun-in-calm",
  "term-handed-over-in-calm",
  "agent-lost-in-calm",
  "term-begun-among-foreign-in-calm",
  "unheard-leader-replaced",
] as const;
export type Occurrence = (typeof occurrenceNames)[number];

/** States that the end of every seed reaches (probe.ts). */
const ofTheProbe: ReadonlySet<Occurrence> = new Set<Occurrence>([
  "term-begun-in-calm",
  "term-handed-over-in-calm",
  "agent-lost-in-calm",
  "term-begun-among-foreign-in-calm",
  "unheard-leader-replaced",
]);

/** The faults behind each occurrence: all of the list; of an inner list any. Absent names need no fault, or many. */
const faultsBehind: Partial<Record<Occurrence, readonly (FaultKind | readonly FaultKind[])[]>> = {
  "ambiguous-append-landed": ["ack-lost"],
  "ambiguous-append-not-landed": [["append-dropped", "append-late", "journal-off", "no-responders"]],
  "ambiguous-append-foreign": [["append-late", "cut", "false-refusal", "foreign"]],
  "refused-with-an-uncommitted-number": ["false-refusal"],
  "stale-read": [["stale-read", "fail-over"]],
  "not-found-though-there": ["not-found"],
  "reader-dead": ["dead-reader"],
  "skipped-record": ["foreign"],
  "term-begun-among-foreign": ["foreign", ["crash", "pause", "isolated"]],
  "tail-cut": ["tail-cut"],
  "segment-lost": ["segment-lost"],
  "gap-made": ["gap"],
  "bit-flipped": ["bit-flip"],
  "segment-renewed": [["tail-cut", "segment-lost", "gap", "bit-flip"]],
  "committed-by-a-base": [["tail-cut", "segment-lost", "gap", "bit-flip"]],
  "storage-full": ["full"],
  "begun-from-a-base": [["crash", "blackout"]],
  blackout: ["blackout"],
  "term-begun-by-another": [["crash", "pause", "isolated", "blackout"]],
  "isolated-leader-stepped-down": ["disconnect"],
  deposed: [["pause", "isolated"]],
  "deposed-with-batches-in-flight": [["pause", "isolated"]],
  "leader-killed-with-batches-in-flight": ["crash"],
  "full-agent-at-fail-over": [["crash", "pause", "isolated", "blackout"]],
  "unconfirmed-assignment-at-fail-over": [["crash", "pause", "isolated", "blackout"]],
  "called-a-duplicate-and-not-stored": ["false-duplicate"],
  "result-after-a-new-attempt": [["pause", "out-of-touch"]],
  "agent-lost": [["crash", "out-of-touch"]],
  "agent-fenced": [["twin", "twin-after-restart"]],
  "submit-repeated-and-known": [["crash", "loss", "cut", "isolated", "blackout"]],
  "submit-unknown": [["full", "no-responders", "journal-off"]],
  "term-begun-in-calm": ["crash"],
  "term-handed-over-in-calm": ["transfer"],
  "agent-lost-in-calm": ["crash"],
  "term-begun-among-foreign-in-calm": ["crash", "foreign"],
  "unheard-leader-replaced": ["disconnect"],
};

/** States that a long run must reach without the faults left out. */
export function reachableWithout(without: readonly FaultKind[]): Occurrence[] {
  const isMet = (fault: FaultKind) => !without.includes(fault);
  return occurrenceNames.filter((name) =>
    (faultsBehind[name] ?? []).every((behind) => [behind].flat().some(isMet)),
  );
}

export class Occurrences {
  readonly #countByName = new Map<Occurrence, number>();
  /** True during the probe: further states do not count, for they must come from the seed's faults. */
  isProbing = false;

  note(name: Occurrence): void {
    if (this.isProbing && !ofTheProbe.has(name)) return;
    this.#countByName.set(name, (this.#countByName.get(name) ?? 0) + 1);
  }

  counts(): Partial<Record<Occurrence, number>> {
    return Object.fromEntries(this.#countByName) as Partial<Record<Occurrence, number>>;
  }
}
