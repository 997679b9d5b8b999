// The position of a queued task in the task's queue: the project among projects, the user among users, the task among
// the user's tasks. Ordered by the claims of a round (docs/scheduling.md, "Whose turn"). For display: changes no queue.
// A project that is paused or at the concurrency limit stands before no other.

import { assert } from "../assert.ts";
import type { Instant, ProjectId, TaskId, UserId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Member } from "../state/clock-queue.ts";
import type { TurnBasis } from "../state/receipt.ts";
import { firstTask, firstTasks, isServedEarlier } from "../state/service-order.ts";
import type { QueueProject, QueueUser, SwarmState, TaskQueue, TaskRow } from "../state/state.ts";
import { basisOf, type Claim, compareClaims } from "./claim.ts";
import type { Calling } from "./eligibility.ts";
import { isWantedByAny } from "./explain-agents.ts";
import { budgetVerdict, projectGate } from "./gates.ts";
import type { Best } from "./level.ts";
import { LevelMaker } from "./level-maker.ts";
import { RoundSizes } from "./round-sizes.ts";
import {
  goesByStarvationLimit,
  isTaskPastStarvationLimit,
  lateTasks,
  type StarvationLimitTerms,
  starvationLimitOfProjects,
  starvationLimitOfUsers,
  waited,
} from "./starvation-limit.ts";

/** The position at one level. */
export interface LevelPlace {
  /** 1 is next. */
  readonly place: number;
  /** Waiting members of the level. */
  readonly of: number;
  /**
   * The wait since the last service in the queue, or since the entry. Counted in the level's unit: ticks of the kind (a
   * project), turns of the project (a user), turns of the user (a task).
   */
  readonly waited: number;
  /** The wait after which the member goes before all shorter waits; absent without a starvation limit. */
  readonly starvationLimit?: number;
}

/** The position of a project or a user at its level. */
export interface TurnPlace extends LevelPlace {
  /** The class of the member's next turn. */
  readonly basis: TurnBasis;
  /** The member's virtual clock, and virtual time of its level: thousandths of weight, divided by the share. */
  readonly clock: number;
  readonly virtualTime: number;
}

export interface Position {
  readonly project: TurnPlace;
  readonly user: TurnPlace;
  readonly task: LevelPlace;
  /** Waiting tasks of the same kind, role and needs, this task included. */
  readonly waiting: number;
  /**
   * The next task of the queue within limits and budgets, with or without an eligible agent. Absent when no task fits
   * its project's limits and budgets.
   */
  readonly next?: { readonly task: TaskId; readonly project: ProjectId; readonly user: UserId };
}

/** @param row a queued task */
export function positionOf(state: SwarmState, row: TaskRow, at: Instant): Position {
  assert(row.partition !== undefined, "a queued task stands in a queue");
  return new Bystander(state, row.partition.user.project.queue, at).positionOf(row, row.partition.user);
}

class Bystander {
  readonly #state: SwarmState;
  readonly #queue: TaskQueue;
  readonly #sizes: RoundSizes;
  readonly #at: Instant;
  readonly #claims: LevelMaker;
  readonly #usersByProject = new Map<QueueProject, readonly Best<QueueUser>[]>();

  constructor(state: SwarmState, queue: TaskQueue, at: Instant) {
    this.#state = state;
    this.#queue = queue;
    this.#at = at;
    this.#sizes = new RoundSizes(state.policy.starvationLimit);
    this.#claims = new LevelMaker({
      state,
      at,
      queues: queuesOfRound(state, queue, at),
      sizes: this.#sizes,
      bestUserOf: (project) => this.#bestUserOf(project),
      firstTaskOf: (user) => firstTask(user),
    });
  }

  positionOf(row: TaskRow, user: QueueUser): Position {
    const { project } = user;
    const projects = [...this.#queue.memberByProject.values()].filter(
      (member) => member === project || projectGate(member.row) === undefined,
    );
    const byProject = ranked(projects, (member) => this.#claims.claimOfProject(member));
    const byUser = this.#usersOf(project);
    const next = this.#nextOf(byProject.map(({ member }) => member));
    return {
      project: {
        ...this.#placeOf(project, byProject, starvationLimitOfProjects(this.#sizes, this.#queue)),
        of: this.#queue.memberByProject.size,
        clock: project.account.clock,
        virtualTime: this.#state.virtualTime,
      },
      user: {
        ...this.#placeOf(user, byUser, starvationLimitOfUsers(this.#state, this.#sizes, project)),
        of: project.memberByUser.size,
        clock: user.account.clock,
        virtualTime: project.row.virtualTime,
      },
      task: this.#placeOfTask(row, user),
      waiting: this.#queue.size,
      ...(next === undefined
        ? {}
        : { next: { task: next.spec.id, project: next.spec.project, user: next.spec.user } }),
    };
  }

  #usersOf(project: QueueProject): readonly Best<QueueUser>[] {
    const known = this.#usersByProject.get(project);
    if (known !== undefined) return known;
    const users = ranked([...project.memberByUser.values()], (user) => this.#claims.claimOfUser(user));
    this.#usersByProject.set(project, users);
    return users;
  }

  #bestUserOf(project: QueueProject): Best<QueueUser> | undefined {
    return this.#usersOf(project)[0];
  }

  #placeOf<Item extends Member>(member: Item, order: readonly Best<Item>[], terms: StarvationLimitTerms) {
    const at = order.findIndex((best) => best.member === member);
    const claim = order[at]?.claim;
    assert(claim !== undefined, "who waits has a claim");
    return {
      place: at + 1,
      basis: basisOf(claim),
      waited: waited(member, terms),
      ...starvationLimitWithin(terms.after),
    };
  }

  /** Tasks past the starvation limit by age, then the others by (priority, submission). */
  #placeOfTask(row: TaskRow, user: QueueUser): LevelPlace {
    const isLate = isTaskPastStarvationLimit(this.#sizes, row, user);
    let before = 0;
    for (const { tasks } of user.partitions) {
      for (const other of tasks.values()) {
        if (other === row) continue;
        const isOtherLate = isTaskPastStarvationLimit(this.#sizes, other, user);
        if (isOtherLate !== isLate) before += isOtherLate ? 1 : 0;
        else if (isLate ? other.queuedOrder < row.queuedOrder : isServedEarlier(other, row)) before += 1;
      }
    }
    return {
      place: before + 1,
      of: user.size,
      waited: this.#sizes.turnsWaited(row, user),
      ...starvationLimitWithin(this.#sizes.starvationLimitOf(this.#sizes.tasks(user))),
    };
  }

  /** The first task within its budgets, among the first few users of each project. */
  #nextOf(projects: readonly QueueProject[]): TaskRow | undefined {
    for (const project of projects) {
      if (projectGate(project.row) !== undefined) continue;
      const found = this.#nextIn(project);
      if (found === "nobody") return undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * A misfit past the starvation limit keeps room: no task with the same budget passes. Considers budgets alone: a
   * round also skips tasks without eligible agents, and keeps no room for such tasks.
   */
  #nextIn(project: QueueProject): TaskRow | "nobody" | undefined {
    for (const { member: user } of this.#usersOf(project).slice(0, limits.budgetLookAhead)) {
      const late = lateTasks(this.#sizes, user);
      const isDue = goesByStarvationLimit(this.#state, this.#sizes, user);
      for (const task of [...late, ...firstTasks(user, limits.budgetLookAhead)]) {
        const verdict = budgetVerdict(this.#state, project.row, task.spec, this.#at);
        if (verdict.kind === "runs") return task;
        if (isDue || late.includes(task)) return verdict.reason === "global-budget" ? "nobody" : undefined;
      }
    }
    return undefined;
  }
}

/** The queues that totals and maxima count: `load` and `deficit` compare with all waiting members of open queues. */
function queuesOfRound(state: SwarmState, queue: TaskQueue, at: Instant): TaskQueue[] {
  const { projectTurn, userTurn } = state.policy;
  const isRelative = projectTurn === "deficit" || projectTurn === "load" || userTurn === "load";
  if (!isRelative) return [queue];
  return [...state.queueByKey.values()].filter(
    (other) => other === queue || isWantedByAny(state, { ...callingOf(other), avoid: [] }, at),
  );
}

function callingOf({ kind, role, needs }: TaskQueue): Calling {
  return { kind, role, needs };
}

/** In the order of their turns, without members that have no claim. */
function ranked<Item>(members: readonly Item[], claimOf: (member: Item) => Claim | undefined): Best<Item>[] {
  const found: Best<Item>[] = [];
  for (const member of members) {
    const claim = claimOf(member);
    if (claim !== undefined) found.push({ member, claim });
  }
  return found.sort((a, b) => compareClaims(a.claim, b.claim));
}

function starvationLimitWithin(after: number): { readonly starvationLimit?: number } {
  return Number.isFinite(after) ? { starvationLimit: after } : {};
}
