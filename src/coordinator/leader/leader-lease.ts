// The leader lease. An acknowledged append *sent* less than 0.8·T ago proves that no second coordinator can lead by
// now. An unshared journal needs no proof.

import type { Clock } from "../../clock.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Timing } from "../timing.ts";

export interface LeaderLeaseDeps {
  readonly journal: Pick<Journal, "sharable">;
  readonly clock: Clock;
  readonly timing: Timing;
}

export class LeaderLease {
  readonly #deps: LeaderLeaseDeps;
  #provenMonotonicMs: number;
  /** When a batch was last sent for the first time. */
  #appendedMonotonicMs: number;

  /** @param provenMonotonicMs when the segment's `Opened` was sent */
  constructor(deps: LeaderLeaseDeps, provenMonotonicMs: number) {
    this.#deps = deps;
    this.#provenMonotonicMs = provenMonotonicMs;
    this.#appendedMonotonicMs = deps.clock.monotonicMs();
  }

  /** When the newest acknowledged append was sent. */
  get provenMonotonicMs(): number {
    return this.#provenMonotonicMs;
  }

  /** Whether something definite may be said now. */
  get isProven(): boolean {
    return this.isYoung(this.#provenMonotonicMs);
  }

  /** True if the newest batch in flight will prove the lease once stored. A batch sent long ago may have been stored
   *  before a new leader's term, and proves nothing. */
  get willBeProven(): boolean {
    return this.isYoung(this.#appendedMonotonicMs);
  }

  /** True if an append is acknowledged too late, or follows 0.8·T without an acknowledged one: its acknowledgement
   *  proves nothing. A successor may have sealed the segment meanwhile, and a power loss may have taken the seal. */
  isLate(sentMonotonicMs: number): boolean {
    const { journal, timing } = this.#deps;
    if (!journal.sharable) return false;
    return !this.isYoung(sentMonotonicMs) || sentMonotonicMs - this.#provenMonotonicMs >= timing.leaseMs;
  }

  /** True if an append is due, as a heartbeat, before standbys notice silence. */
  get isHeartbeatDue(): boolean {
    const { journal, clock, timing } = this.#deps;
    return (
      journal.sharable &&
      clock.monotonicMs() - this.#appendedMonotonicMs >= timing.heartbeatMs - timing.pulseMs
    );
  }

  appended(): void {
    this.#appendedMonotonicMs = this.#deps.clock.monotonicMs();
  }

  acknowledged(sentMonotonicMs: number): void {
    this.#provenMonotonicMs = sentMonotonicMs;
  }

  /** True for 0.8·T. */
  isYoung(monotonicMs: number): boolean {
    const { journal, clock, timing } = this.#deps;
    if (!journal.sharable) return true;
    return clock.monotonicMs() - monotonicMs < timing.leaseMs;
  }
}
