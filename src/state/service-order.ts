// Which of one user's tasks in one lane is served next: the one that waits longest, once it is past the ceiling, else
// the lowest (priority, submission).

import type { LaneUser, TaskQueue, TaskRow } from "./state.ts";

export const nothingIsOut = () => false;

/** Tasks of one queue leave by (priority, order of submission). */
export function isServedEarlier(a: TaskRow, b: TaskRow): boolean {
  return a.spec.priority !== b.spec.priority ? a.spec.priority < b.spec.priority : a.sequence < b.sequence;
}

/** The lowest (priority, submission) in the queues that are not out. */
export function firstTask(
  user: LaneUser,
  isOut: (queue: TaskQueue) => boolean = nothingIsOut,
): TaskRow | undefined {
  const [only] = user.queues;
  if (only !== undefined && user.queues.length === 1) return isOut(only) ? undefined : only.tasks.peek();
  let first: TaskRow | undefined;
  for (const queue of user.queues) {
    const head = queue.tasks.peek();
    if (head === undefined || isOut(queue)) continue;
    if (first === undefined || isServedEarlier(head, first)) first = head;
  }
  return first;
}

/** The longest queued in the queues that are not out. */
export function oldestTask(
  user: LaneUser,
  isOut: (queue: TaskQueue) => boolean = nothingIsOut,
): TaskRow | undefined {
  const [only] = user.queues;
  if (only !== undefined && user.queues.length === 1) return isOut(only) ? undefined : only.oldest;
  let oldest: TaskRow | undefined;
  for (const queue of user.queues) {
    if (queue.oldest === undefined || isOut(queue)) continue;
    if (oldest === undefined || queue.oldest.queuedOrder < oldest.queuedOrder) oldest = queue.oldest;
  }
  return oldest;
}

/** The first tasks by (priority, submission) in the queues that are not out, at most `countMax`. */
export function firstTasks(
  user: LaneUser,
  countMax: number,
  isOut: (queue: TaskQueue) => boolean = nothingIsOut,
): TaskRow[] {
  const first: TaskRow[] = [];
  for (const queue of user.queues) if (!isOut(queue)) first.push(...queue.tasks.first(countMax));
  return first.sort((a, b) => (isServedEarlier(a, b) ? -1 : 1)).slice(0, countMax);
}
