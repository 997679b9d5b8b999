// The waiter that gets a free slot: LOCO's "highest scorer", used by the live slots and by the exact model alike. Not
// here: queues, ticks and slots; the caller supplies the waiters, already aged.

import { loadOf, maximaOf, type Queue } from "./load.ts";

export interface Contention<Waiter> {
  /** In order of arrival; each waits for at least one slot. */
  readonly waiters: Iterable<Waiter>;
  /** The queue of a waiter's agent; a member of `queues`. */
  readonly queueOf: (waiter: Waiter) => Queue;
  /** Queues of all agents with queued work for the resource, whether or not the agent asked for a slot yet. */
  readonly queues: Iterable<Queue>;
  /** [0, 1] */
  readonly alpha: number;
}

export interface Pick<Waiter> {
  readonly waiter: Waiter;
  /** L of the waiter's agent, [0, 1]. */
  readonly load: number;
}

/**
 * The waiter whose agent has the highest L(i), relative to all competitors; of equals, the first in order (so of one
 * agent's several waiters the earliest). Scores hold for one moment: call this when a slot is free, after the tick and
 * the ageing.
 *
 * @returns undefined without waiters
 */
export function pickWaiter<Waiter>(contention: Contention<Waiter>): Pick<Waiter> | undefined {
  const { waiters, queueOf, queues, alpha } = contention;
  const maxima = maximaOf(queues);
  let best: Pick<Waiter> | undefined;
  for (const waiter of waiters) {
    const load = loadOf(queueOf(waiter), maxima, alpha);
    if (best === undefined || load > best.load) best = { waiter, load };
  }
  return best;
}
