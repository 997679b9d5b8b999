// How many stood where when a round began, and how many turns they had had. The ceiling is relative to these: were it
// relative to those that are left, it would sink while the round lasts, and claims would get better.

import type { Lane, LaneProject, LaneUser, TaskRow } from "../core/state.ts";

export class RoundSizes {
  readonly #ceiling: number;
  readonly #sizeOf = new Map<Lane | LaneProject | LaneUser, number>();
  readonly #turnsOf = new Map<LaneProject | LaneUser, number>();

  /** @param ceiling ticks for each one that waits; 0 is off */
  constructor(ceiling: number) {
    this.#ceiling = ceiling;
  }

  /** A task of theirs is about to leave. */
  keep(lane: Lane, project: LaneProject, user: LaneUser): void {
    if (!this.#sizeOf.has(lane)) this.#sizeOf.set(lane, lane.memberByProject.size);
    if (!this.#sizeOf.has(project)) this.#sizeOf.set(project, project.memberByUser.size);
    if (!this.#sizeOf.has(user)) this.#sizeOf.set(user, user.size);
    if (!this.#turnsOf.has(project)) this.#turnsOf.set(project, project.turns);
    if (!this.#turnsOf.has(user)) this.#turnsOf.set(user, user.turns);
  }

  projects(lane: Lane): number {
    return this.#sizeOf.get(lane) ?? lane.memberByProject.size;
  }

  users(project: LaneProject): number {
    return this.#sizeOf.get(project) ?? project.memberByUser.size;
  }

  tasks(user: LaneUser): number {
    return this.#sizeOf.get(user) ?? user.size;
  }

  /** Turns that a project or a user had had in its lane. */
  turns(member: LaneProject | LaneUser): number {
    return this.#turnsOf.get(member) ?? member.turns;
  }

  /** Turns that a task's user had had since the task was queued, as of the round's start. */
  turnsWaited({ queuedTurn }: TaskRow, user: LaneUser): number {
    return this.turns(user) - queuedTurn;
  }

  /** Ticks after which one among so many has waited long enough. */
  ceilingOf(waiting: number): number {
    return this.#ceiling === 0 ? Number.POSITIVE_INFINITY : this.#ceiling * waiting;
  }
}
