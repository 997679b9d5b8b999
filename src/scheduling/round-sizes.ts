// How many stood where when a round began, and how many turns they had had. The ceiling is relative to these: were it
// relative to those that are left, it would sink while the round lasts, and claims would get better.

import type { Lane, LaneProject, LaneUser, TaskRow } from "../state/state.ts";

export class RoundSizes {
  readonly #ceiling: number;
  /** Of whoever was granted something since. */
  readonly #startOf = new Map<
    Lane | LaneProject | LaneUser,
    { readonly size: number; readonly turns: number }
  >();

  /** @param ceiling of the policy; 0 is off */
  constructor(ceiling: number) {
    this.#ceiling = ceiling;
  }

  /** A task of theirs is about to leave. */
  keep(lane: Lane, project: LaneProject, user: LaneUser): void {
    if (!this.#startOf.has(lane)) this.#startOf.set(lane, { size: lane.projects.size, turns: 0 });
    if (!this.#startOf.has(project))
      this.#startOf.set(project, { size: project.users.size, turns: project.turns });
    if (!this.#startOf.has(user)) this.#startOf.set(user, { size: user.size, turns: user.turns });
  }

  projects(lane: Lane): number {
    return this.#startOf.get(lane)?.size ?? lane.projects.size;
  }

  users(project: LaneProject): number {
    return this.#startOf.get(project)?.size ?? project.users.size;
  }

  tasks(user: LaneUser): number {
    return this.#startOf.get(user)?.size ?? user.size;
  }

  /** Turns that a project or a user had had in its lane. */
  turns(member: LaneProject | LaneUser): number {
    return this.#startOf.get(member)?.turns ?? member.turns;
  }

  /** Turns that a task's user had had since the task was queued, as of the round's start. */
  turnsWaited({ queuedTurn }: Pick<TaskRow, "queuedTurn">, user: LaneUser): number {
    return this.turns(user) - queuedTurn;
  }

  /** After how many ticks or turns, whichever its level counts, one among so many has waited long enough. */
  ceilingOf(waiting: number): number {
    return this.#ceiling === 0 ? Number.POSITIVE_INFINITY : this.#ceiling * waiting;
  }
}
