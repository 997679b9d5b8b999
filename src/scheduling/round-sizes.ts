// How many stood where when a round began, and how many turns they had had. The starvation limit is relative to these:
// were it relative to those that are left, it would sink while the round lasts, and claims would get better.

import type { QueueProject, QueueUser, TaskQueue, TaskRow } from "../state/state.ts";

export class RoundSizes {
  readonly #starvationLimit: number;
  /** Of whoever was granted something since. */
  readonly #startOf = new Map<
    TaskQueue | QueueProject | QueueUser,
    { readonly size: number; readonly turns: number }
  >();

  /** @param starvation limit of the policy; 0 is off */
  constructor(starvationLimit: number) {
    this.#starvationLimit = starvationLimit;
  }

  /** A task of theirs is about to leave. */
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

  /** Turns that a task's user had had since the task was queued, as of the round's start. */
  turnsWaited({ queuedTurn }: Pick<TaskRow, "queuedTurn">, user: QueueUser): number {
    return this.turns(user) - queuedTurn;
  }

  /** After how many ticks or turns, whichever its level counts, one among so many has waited long enough. */
  starvationLimitOf(waiting: number): number {
    return this.#starvationLimit === 0 ? Number.POSITIVE_INFINITY : this.#starvationLimit * waiting;
  }
}
