// The fairness account of a project, or of a user within a project: its virtual clock and last grant
// (docs/scheduling.md, "The clocks"). Only `apply` changes an account. A clock never goes back: an overcharge is
// carried to the next grant.

import type { Instant } from "../ids.ts";

export interface Account {
  /** Cost granted so far over the share, in thousandths of weight; an idle account restarts at virtual time. */
  clock: number;
  /** `state.orders` and journal time of the last grant; 0 before the first. */
  servedOrder: number;
  servedAt: Instant;
  /** `state.orders` when the account last went from no queued task to one. */
  arrivedOrder: number;
  /** Added to the cost of the next grant, thousandths of weight; below 0 after an overcharge. */
  carried: number;
}

export function newAccount(): Account {
  return { clock: 0, servedOrder: 0, servedAt: 0 as Instant, arrivedOrder: 0, carried: 0 };
}

/**
 * Charges a grant and returns its start: max(clock before the grant, virtual time), as in start-time fair queueing.
 *
 * @param virtualTime virtual time of the account's level
 * @param cost weight of the granted task, in thousandths
 * @param share credit weight or importance, > 0
 */
export function charge(account: Account, virtualTime: number, cost: number, share: number): number {
  const start = Math.max(account.clock, virtualTime);
  const due = cost + account.carried;
  account.carried = Math.min(due, 0);
  account.clock = start + Math.max(due, 0) / share;
  return start;
}
