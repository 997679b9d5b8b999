// Who gets the slot that became free: LOCO's "highest scorer", used by the live slots and by the exact model
// alike. Not here: queues, ticks and slots themselves; whoever holds them hands in what waits, already aged.

import { loadOf, maximaOf, type Queue } from "./load.ts";

export interface Contention<Waiter> {
  /** In order of arrival; none waits for nothing. */
  readonly waiters: Iterable<Waiter>;
  /** The queue of the agent that a waiter belongs to; one of `queues`. */
  readonly queueOf: (waiter: Waiter) => Queue;
  /** Of every agent that has something queued for the resource, whether or not it asked for a slot yet. */
  readonly queues: Iterable<Queue>;
  /** [0, 1] */
  readonly alpha: number;
}

export interface Pick<Waiter> {
  readonly waiter: Waiter;
  /** L of its agent, [0, 1]. */
  readonly load: number;
}

/**
 * The waiter whose agent has the highest L(i), relative to all that compete; of equals, the one that came first
 * (so of one agent's several waiters the earliest). Scores are of this moment: call it when a slot is free,
 * after the tick and the ageing, never before.
 *
 * @returns undefined when nobody waits
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
