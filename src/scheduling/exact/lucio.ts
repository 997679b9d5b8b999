// Lucio's scheduler, to the letter ("No Customer Left Behind"). Users are ranked by the time since their last service,
// times the weight of the task, again in each cycle. At most TopN tasks run at once. A leak of the original is fixed:
// the loss of an agent returns its tasks' share of TopN. A model in a single process, for simulations. In production,
// `recency` orders the filtered tasks (planner.ts).

import { InvalidValueError } from "../../errors.ts";
import { checkAmount, checkObject, checkPositive, checkText } from "../../state/argument.ts";

export interface LucioTask {
  readonly id: string;
  readonly user: string;
  /** "Each task type has a static weight that reflects its importance", > 0. */
  readonly taskWeight: number;
}

export interface LucioPick {
  readonly task: LucioTask;
  /** The score at the moment of the pick. */
  readonly score: number;
}

/** For a user never scheduled: the beginning of the clock. The document does not say. */
const neverScheduledAt = 0;

/**
 * `task_weight * (current_time - user_last_scheduled_time)`.
 *
 * @param taskWeight > 0
 * @param now ≥ 0
 * @param lastScheduledAt when a task of the user was last scheduled, ≥ 0; undefined: never
 * @throws InvalidValueError for an invalid number or a number out of range
 */
export function priorityScore(taskWeight: number, now: number, lastScheduledAt: number | undefined): number {
  checkPositive(taskWeight, "taskWeight");
  checkAmount(now, "now");
  if (lastScheduledAt !== undefined) checkAmount(lastScheduledAt, "lastScheduledAt");
  return scoreOf(taskWeight, now, lastScheduledAt);
}

/** `priorityScore` of arguments checked before: a cycle computes it for each user and weight. */
function scoreOf(taskWeight: number, now: number, lastScheduledAt: number | undefined): number {
  return taskWeight * (now - (lastScheduledAt ?? neverScheduledAt));
}

interface PendingTask {
  readonly task: LucioTask;
  readonly sequence: number;
}

interface LucioUser {
  lastScheduledAt: number | undefined;
  /** Waiting tasks, in order of submission, by weight: tasks of a type weigh the same, so the lists are few. */
  readonly pendingByWeight: Map<number, PendingTask[]>;
}

interface Ranked {
  readonly user: LucioUser;
  readonly pending: PendingTask;
  readonly score: number;
}

export class LucioScheduler {
  #topN: number;
  readonly #userByName = new Map<string, LucioUser>();
  /** Running tasks, with the agent once known. */
  readonly #agentByTask = new Map<string, string | undefined>();
  readonly #pendingIds = new Set<string>();
  #submissions = 0;
  #now = neverScheduledAt;

  /** @param topN tasks that may run at once, ≥ 1 @throws InvalidValueError */
  constructor(topN: number) {
    if (!(Number.isSafeInteger(topN) && topN >= 1)) {
      throw new InvalidValueError(`TopN is a whole number from 1, not ${topN}`, { field: "topN" });
    }
    this.#topN = topN;
  }

  /** How many more tasks may be scheduled. */
  get topN(): number {
    return this.#topN;
  }

  /**
   * @throws InvalidValueError for an id or a user that is no text, a weight that is not above 0, or an id that is
   *   pending or running already
   */
  submit(task: LucioTask): void {
    checkObject(task, "task");
    checkText(task.id, "id");
    checkText(task.user, "user");
    checkPositive(task.taskWeight, "taskWeight");
    if (this.#pendingIds.has(task.id) || this.#agentByTask.has(task.id)) {
      throw new InvalidValueError(`there is a task ${task.id} already`, { field: "id" });
    }
    this.#submissions += 1;
    this.#pendingIds.add(task.id);
    const { pendingByWeight } = this.#userOf(task.user);
    const pending = { task, sequence: this.#submissions };
    const alike = pendingByWeight.get(task.taskWeight);
    if (alike === undefined) pendingByWeight.set(task.taskWeight, [pending]);
    else alike.push(pending);
  }

  /**
   * One cycle: the highest scores first, equal scores in order of submission, up to TopN. Scheduling a task resets its
   * user's score at once, so that the rest of a burst follows the tasks of all further users within the same cycle.
   *
   * @param now in any unit, ≥ 0 and not before the last cycle
   * @throws InvalidValueError for an earlier time than before
   */
  schedule(now: number): LucioPick[] {
    if (!(Number.isFinite(now) && now >= this.#now)) {
      throw new InvalidValueError(`time does not go back: ${now} after ${this.#now}`, { field: "now" });
    }
    this.#now = now;
    const picks: LucioPick[] = [];
    while (this.#topN > 0) {
      const ranked = this.#highest(now);
      if (ranked === undefined) break;
      this.#take(ranked, now);
      picks.push({ task: ranked.pending.task, score: ranked.score });
    }
    return picks;
  }

  /** Records the agent of a scheduled task, for `agentDied`. @throws InvalidValueError */
  started(task: string, agent: string): void {
    this.#checkScheduled(task);
    checkText(agent, "agent");
    this.#agentByTask.set(task, agent);
  }

  /** Ends a task, by success or failure: returns 1 to TopN, once. @throws InvalidValueError */
  ended(task: string): void {
    this.#checkScheduled(task);
    this.#agentByTask.delete(task);
    this.#topN += 1;
  }

  /** @returns the tasks lost with the agent; each returns 1 to TopN */
  agentDied(agent: string): string[] {
    const died = [...this.#agentByTask].filter(([, runs]) => runs === agent).map(([task]) => task);
    for (const task of died) this.ended(task);
    return died;
  }

  #highest(now: number): Ranked | undefined {
    let highest: Ranked | undefined;
    for (const user of this.#userByName.values()) {
      for (const [pending] of user.pendingByWeight.values()) {
        if (pending === undefined) continue;
        const score = scoreOf(pending.task.taskWeight, now, user.lastScheduledAt);
        const ranked = { user, pending, score };
        if (highest === undefined || isBefore(ranked, highest)) highest = ranked;
      }
    }
    return highest;
  }

  #take({ user, pending }: Ranked, now: number): void {
    const { id, taskWeight } = pending.task;
    const alike = user.pendingByWeight.get(taskWeight) as PendingTask[];
    alike.shift();
    if (alike.length === 0) user.pendingByWeight.delete(taskWeight);
    user.lastScheduledAt = now;
    this.#pendingIds.delete(id);
    this.#agentByTask.set(id, undefined);
    this.#topN -= 1;
  }

  #userOf(name: string): LucioUser {
    const known = this.#userByName.get(name);
    if (known !== undefined) return known;
    const user: LucioUser = { lastScheduledAt: undefined, pendingByWeight: new Map() };
    this.#userByName.set(name, user);
    return user;
  }

  #checkScheduled(task: string): void {
    if (this.#agentByTask.has(task)) return;
    throw new InvalidValueError(`task ${task} is not scheduled, or has ended`, { field: "task" });
  }
}

function isBefore(a: Ranked, b: Ranked): boolean {
  return a.score !== b.score ? a.score > b.score : a.pending.sequence < b.pending.sequence;
}
