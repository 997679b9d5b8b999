// Sizes of levels and numbers of turns when a round began. The starvation limit is relative to these. Relative to the
// present sizes, the limit would sink during the round, and claims would get better.

import type { QueueProject, QueueUser, TaskQueue, TaskRow } from "../state/state.ts";

export class RoundSizes {
  readonly #starvationLimit: number;
  /** For levels and members with a grant since. */
  readonly #startOf = new Map<
    TaskQueue | QueueProject | QueueUser,
    { readonly size: number; readonly turns: number }
  >();

  /** @param starvationLimit the policy's; 0 disables it */
  constructor(starvationLimit: number) {
    this.#starvationLimit = starvationLimit;
  }

  /** Notes the sizes before a task of the queue, project and user leaves. */
  keep(queue: TaskQueue, project: QueueProject, user: QueueUser): void {
    if (!this.#startOf.has(queue)) this.#startOf.set(queue, { size: queue.projects.size, turns: 0 });
    if (!this.#startOf.has(project))
      this.#startOf.set(project, { size: project.users.size, turns: project.turns });
    if (!this.#startOf.has(user)) this.#startOf.set(user, { size: user.size, turns: user.turns });
  }

  projects(queue: TaskQueue): number {
    return this.#startOf.get(queue)?.size ?? queue.projects.size;
  }

  users(project: QueueProject): number {
    return this.#startOf.get(project)?.size ?? project.users.size;
  }

  tasks(user: QueueUser): number {
    return this.#startOf.get(user)?.size ?? user.size;
  }

  /** Turns that a project or a user had had in its queue. */
  turns(member: QueueProject | QueueUser): number {
    return this.#startOf.get(member)?.turns ?? member.turns;
  }

  /** Turns of a task's user since the task was queued, as of the round's start. */
  turnsWaited({ queuedTurn }: Pick<TaskRow, "queuedTurn">, user: QueueUser): number {
    return this.turns(user) - queuedTurn;
  }

  /** The wait after which one member among `waiting` goes next, in its level's ticks or turns. */
  starvationLimitOf(waiting: number): number {
    return this.#starvationLimit === 0 ? Number.POSITIVE_INFINITY : this.#starvationLimit * waiting;
  }
}
