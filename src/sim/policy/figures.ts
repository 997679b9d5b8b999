// Figures of a log that several scenarios share. docs/simulate.md has the definitions.

import type { Log, TaskLog } from "./run-tasks.ts";
import { jainOf } from "./statistics.ts";

/** Time from arrival to the beginning of the first attempt, ms, of each task that began. */
export function waitsMsOf(tasks: readonly TaskLog[]): number[] {
  return tasks.flatMap(({ task, startedAt }) =>
    startedAt === undefined ? [] : [startedAt - task.arrivesAt],
  );
}

/** Time from arrival to the end, ms, of each task that ended. */
export function sojournsMsOf(tasks: readonly TaskLog[]): number[] {
  return tasks.flatMap(({ task, endedAt }) => (endedAt === undefined ? [] : [endedAt - task.arrivesAt]));
}

/** Number of started attempts by user. @param users all users, so that users without a start count as 0 */
export function servedByUser(log: Log, users: readonly string[]): number[] {
  const served = new Map(users.map((user) => [user, 0]));
  for (const { task } of log.attempts) served.set(task.user, (served.get(task.user) ?? 0) + 1);
  return [...served.values()];
}

export function tasksOf(log: Log, user: string): TaskLog[] {
  return log.tasks.filter(({ task }) => task.user === user);
}

/** How evenly users were served while they competed: Jain's index of the ratios of grants to entitlements. A
 *  grant while n ≥ 2 users wait entitles each waiting user to 1/n of a grant. 1 without any competition. */
export function contendedJain(log: Log): number {
  const waiting = new Map<string, number>();
  const granted = new Map<string, number>();
  const entitled = new Map<string, number>();
  let arrived = 0;
  for (const { task, startedAt } of log.attempts) {
    for (let next = log.tasks[arrived]?.task; next !== undefined && next.arrivesAt <= startedAt; ) {
      add(waiting, next.user, 1);
      arrived += 1;
      next = log.tasks[arrived]?.task;
    }
    if (waiting.size >= 2) {
      add(granted, task.user, 1);
      for (const user of waiting.keys()) add(entitled, user, 1 / waiting.size);
    }
    add(waiting, task.user, -1);
    if ((waiting.get(task.user) ?? 0) <= 0) waiting.delete(task.user);
  }
  return jainOf([...entitled].map(([user, share]) => (granted.get(user) ?? 0) / share));
}

/** The longest run of consecutive grants to one user, among grants that `counts` accepts. */
export function longestRun(log: Log, counts: (startedAt: number) => boolean): number {
  let longest = 0;
  let length = 0;
  let last: string | undefined;
  for (const { task, startedAt } of log.attempts) {
    if (!counts(startedAt)) continue;
    length = task.user === last ? length + 1 : 1;
    last = task.user;
    longest = Math.max(longest, length);
  }
  return longest;
}

function add(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}
