// LOCO's load function: the pressure behind each competitor, relative to the others. One number with two uses: the
// highest load gets the next slot first and the next task last.

import { checkAlpha } from "../state/alpha.ts";
import { checkAmount, checkObjects } from "../state/argument.ts";

/** The waiting work of one competitor. */
export interface Queue {
  /** Sum of the waiting weights, ≥ 0. */
  readonly queueDepth: number;
  /** Age of the oldest waiting work, in ticks, ≥ 0; 0 when nothing waits. */
  readonly oldestAge: number;
}

/**
 * `L(i) = α·Qᵢ/max Q + (1−α)·Dᵢ/max D` (LOCO, "The Equation"), for one competitor. A maximum of 0 makes its term 0.
 *
 * @param maxima maxima over all competitors, `queue` included
 * @param alpha [0, 1]: 0 counts only the longest wait, 1 only the largest queue
 * @returns [0, 1]
 */
export function loadOf(queue: Queue, maxima: Queue, alpha: number): number {
  const depth = maxima.queueDepth === 0 ? 0 : queue.queueDepth / maxima.queueDepth;
  const age = maxima.oldestAge === 0 ? 0 : queue.oldestAge / maxima.oldestAge;
  return alpha * depth + (1 - alpha) * age;
}

/**
 * L of each competitor, in order, for arguments from outside.
 *
 * @param alpha [0, 1]
 * @throws InvalidValueError for an α outside its range, and a depth or an age that is negative or no number
 */
export function loads(queues: readonly Queue[], alpha: number): number[] {
  checkAlpha(alpha);
  checkObjects(queues, "queues");
  for (const [at, { queueDepth, oldestAge }] of queues.entries()) {
    checkAmount(queueDepth, `queues[${at}].queueDepth`);
    checkAmount(oldestAge, `queues[${at}].oldestAge`);
  }
  const maxima = maximaOf(queues);
  return queues.map((queue) => loadOf(queue, maxima, alpha));
}

/** The deepest and the oldest of all, 0 without queues. */
export function maximaOf(queues: Iterable<Queue>): Queue {
  let queueDepth = 0;
  let oldestAge = 0;
  for (const queue of queues) {
    if (queue.queueDepth > queueDepth) queueDepth = queue.queueDepth;
    if (queue.oldestAge > oldestAge) oldestAge = queue.oldestAge;
  }
  return { queueDepth, oldestAge };
}
