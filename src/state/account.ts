// What fairness keeps of a project, and of a user within one: its virtual clock and when it was last served
// (docs/scheduling.md, "The clocks"). Changed by `apply` alone. Clocks never go back: what a grant charged too much
// is carried to the next one.

import type { Instant } from "../ids.ts";

export interface Account {
  /** Cost granted so far in relation to its share, in thousandths of weight; starts anew at virtual time. */
  clock: number;
  /** `state.orders` and journal time of its last grant; 0 before the first. */
  servedOrder: number;
  servedAt: Instant;
  /** `state.orders` when it last went from no queued task to one. */
  arrivedOrder: number;
  /** Added to the cost of its next grant, thousandths of weight; below 0 where it was charged too much. */
  carried: number;
}

export function newAccount(): Account {
  return { clock: 0, servedOrder: 0, servedAt: 0 as Instant, arrivedOrder: 0, carried: 0 };
}

/**
 * Charges a grant and returns its start: max(clock, virtual time), where the clock stood before (start-time fair
 * queueing).
 *
 * @param virtualTime of the account's level
 * @param cost of the grant, thousandths of weight
 * @param share credit weight or importance, > 0
 */
export function charge(account: Account, virtualTime: number, cost: number, share: number): number {
  const start = Math.max(account.clock, virtualTime);
  const due = cost + account.carried;
  account.carried = Math.min(due, 0);
  account.clock = start + Math.max(due, 0) / share;
  return start;
}
