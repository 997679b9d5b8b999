// The next task of a user in a queue: the longest waiting, once past the starvation limit, else the lowest (priority,
// submission).

import type { QueueUser, TaskPartition, TaskRow } from "./state.ts";

export const nothingIsOut = () => false;

/** Tasks of one queue leave by (priority, order of submission). */
export function isServedEarlier(a: TaskRow, b: TaskRow): boolean {
  return a.spec.priority !== b.spec.priority ? a.spec.priority < b.spec.priority : a.sequence < b.sequence;
}

/** The lowest (priority, submission) in the partitions that are not out. */
export function firstTask(
  user: QueueUser,
  isOut: (partition: TaskPartition) => boolean = nothingIsOut,
): TaskRow | undefined {
  const [only] = user.partitions;
  if (only !== undefined && user.partitions.length === 1) return isOut(only) ? undefined : only.tasks.peek();
  let first: TaskRow | undefined;
  for (const partition of user.partitions) {
    const head = partition.tasks.peek();
    if (head === undefined || isOut(partition)) continue;
    if (first === undefined || isServedEarlier(head, first)) first = head;
  }
  return first;
}

/** The longest queued in the partitions that are not out. */
export function oldestTask(
  user: QueueUser,
  isOut: (partition: TaskPartition) => boolean = nothingIsOut,
): TaskRow | undefined {
  const [only] = user.partitions;
  if (only !== undefined && user.partitions.length === 1) return isOut(only) ? undefined : only.oldest;
  let oldest: TaskRow | undefined;
  for (const partition of user.partitions) {
    if (partition.oldest === undefined || isOut(partition)) continue;
    if (oldest === undefined || partition.oldest.queuedOrder < oldest.queuedOrder) oldest = partition.oldest;
  }
  return oldest;
}

/** The first tasks by (priority, submission) in the partitions that are not out, at most `countMax`. */
export function firstTasks(
  user: QueueUser,
  countMax: number,
  isOut: (partition: TaskPartition) => boolean = nothingIsOut,
): TaskRow[] {
  const first: TaskRow[] = [];
  for (const partition of user.partitions)
    if (!isOut(partition)) first.push(...partition.tasks.first(countMax));
  return first.sort((a, b) => (isServedEarlier(a, b) ? -1 : 1)).slice(0, countMax);
}
