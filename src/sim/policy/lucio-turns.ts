// Lucio's rule over users: the task with the highest priority score goes next, re-ranked at every pick, and a
// user's score starts anew as soon as one of its tasks is scheduled.

import type { SimTask } from "./dispatcher.ts";
import { type UserQueue, UserTurns } from "./turn-rules.ts";

/** `priority_score = task_weight * (current_time − user_last_scheduled_time)`. A user that was never scheduled
 *  counts from the beginning; of equal scores the first submitted. */
export class LucioTurns extends UserTurns {
  readonly #scheduledAt = new Map<UserQueue, number>();

  protected override pick(waiting: readonly UserQueue[], at: number): UserQueue {
    let best = waiting[0] as UserQueue;
    for (const queue of waiting) {
      const lead = this.#scoreOf(queue, at) - this.#scoreOf(best, at);
      if (lead > 0 || (lead === 0 && firstIndex(queue) < firstIndex(best))) best = queue;
    }
    return best;
  }

  protected override granted(queue: UserQueue, _task: SimTask, at: number): void {
    this.#scheduledAt.set(queue, at);
  }

  #scoreOf(queue: UserQueue, at: number): number {
    return at - (this.#scheduledAt.get(queue) ?? 0);
  }
}

function firstIndex({ tasks }: UserQueue): number {
  return tasks[0]?.index ?? 0;
}
