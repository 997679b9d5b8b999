// The order of turns during one round (docs/scheduling.md, "Whose turn"): the next project, user and task among all
// queues that some agent may serve. Not here: the agent for the task (pool.ts), and gates and budgets (planner.ts,
// which reports exclusions).
//
// An excluded member is taken out of the state's own queues, and put back by `close`. Until then the state is borrowed,
// and no other code may read the queues. In between only assignments are applied to the state.
//
// A grant changes the claims of one project and of one user. So a queue's best is searched again only where the granted
// project was the best. The outcome equals a full comparison of all queues. Users are compared only where projects are
// equal, when one project leads in several queues; tasks only where users are equal.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TurnBases } from "../state/receipt.ts";
import { firstTask, firstTasks, isServedEarlier, oldestTask } from "../state/service-order.ts";
import type {
  ProjectRow,
  QueueProject,
  QueueUser,
  SwarmState,
  TaskPartition,
  TaskQueue,
  TaskRow,
} from "../state/state.ts";
import {
  basisOf,
  type Claim,
  claimOfTask,
  compareClaims,
  starvationLimitTaskClaim,
  taskClaim,
} from "./claim.ts";
import { isBudgeted } from "./gates.ts";
import type { Best, Level } from "./level.ts";
import { LevelMaker } from "./level-maker.ts";
import { RoundSizes } from "./round-sizes.ts";
import { isTaskPastStarvationLimit, lateTasks } from "./starvation-limit.ts";

/** The task whose turn is next. */
export interface Next {
  readonly queue: TaskQueue;
  readonly project: QueueProject;
  readonly user: QueueUser;
  readonly task: TaskRow;
  /** The class of each level's turn. */
  readonly bases: TurnBases;
}

/** One queue's best; each field undefined until needed. */
interface QueueBest {
  readonly queue: TaskQueue;
  project: Best<QueueProject> | undefined;
  user: Best<QueueUser> | undefined;
  task: Claim | undefined;
}

export class TurnOrder {
  /** One entry per queue that has a best; each is computed as far as it was needed. */
  readonly #bests: QueueBest[];
  readonly #projects: Level<TaskQueue, QueueProject>;
  readonly #users: Level<QueueProject, QueueUser>;
  readonly #outPartitions = new Set<TaskPartition>();
  readonly #outProjects = new Set<ProjectRow>();
  readonly #isTakeable: (task: TaskRow) => boolean;
  /** Whether claims depend on single tasks: whether a task may be assigned changes with each grant, in any queue. */
  readonly #isByTask: boolean;
  /** Whether a project or user may wait without an assignable task. */
  #mayLackUsers: boolean;
  readonly #state: SwarmState;
  readonly #sizes: RoundSizes;
  /** The first of the bests, until the next change. */
  #first: QueueBest | undefined;
  /** The grant since the last call of `next`. */
  #granted: Next | undefined;
  readonly #isOut = (partition: TaskPartition) =>
    this.#outPartitions.size > 0 && this.#outPartitions.has(partition);

  /**
   * @param queues that some agent may serve, none empty
   * @param isTakeable whether some agent may have the task now, ignoring its budgets' room; only ever changes to false
   */
  constructor(
    state: SwarmState,
    at: Instant,
    queues: readonly TaskQueue[],
    isTakeable: (task: TaskRow) => boolean,
  ) {
    this.#state = state;
    this.#isTakeable = isTakeable;
    const { projectTurn, userTurn } = state.policy;
    this.#isByTask = projectTurn === "fifo" || userTurn === "fifo";
    this.#mayLackUsers = this.#isByTask;
    this.#sizes = new RoundSizes(state.policy.starvationLimit);
    const makeLevels = new LevelMaker({
      state,
      at,
      queues,
      sizes: this.#sizes,
      bestUserOf: (project) => this.#bestUserOf(project),
      firstTaskOf: (user) => this.#firstTakeable(user),
    });
    this.#projects = makeLevels.ofProjects();
    this.#users = makeLevels.ofUsers();
    this.#bests = queues.map((queue) => ({ queue, project: undefined, user: undefined, task: undefined }));
  }

  /** The next turn; unchanged until a grant or an exclusion. Undefined when no member is left. */
  next(): Next | undefined {
    if (this.#granted !== undefined) this.#followGrant(this.#granted);
    this.#first ??= this.#findFirst();
    return this.#first === undefined ? undefined : this.#nextOf(this.#first);
  }

  /** Notes the coming assignment of the current turn's task, which must happen before the next call of `next`. */
  granting(next: Next): void {
    this.#sizes.keep(next.queue, next.project, next.user);
    this.#granted = next;
  }

  /** Excludes the current queue: no agent can take any of its tasks. */
  excludeQueue({ queue }: Next): void {
    const at = this.#bests.findIndex((best) => best.queue === queue);
    assert(at !== -1, "the queue whose turn it is takes part");
    this.#drop(at);
  }

  /** Excludes a project: none of its tasks may be assigned. */
  excludeProject(row: ProjectRow): void {
    this.#outProjects.add(row);
    this.#forget(({ project }) => project?.member.row === row);
  }

  /** Excludes the current project from the current queue: its permitted agents can take none of these tasks. */
  excludeProjectHere({ queue, project }: Next): void {
    this.#projects.exclude(queue, project);
    this.#forget((best) => best.queue === queue);
  }

  /** Excludes the current user: none of its tasks fits. */
  excludeUser({ queue, project, user }: Next): void {
    this.#users.exclude(project, user);
    this.#mayLackUsers = true;
    this.#forget((best) => best.queue === queue);
  }

  /** Excludes a partition: all agents that may have its tasks are full. */
  excludePartition(partition: TaskPartition): void {
    this.#outPartitions.add(partition);
    this.#mayLackUsers = true;
    this.#forget(({ queue }) => queue === partition.user.project.queue);
  }

  /**
   * The current user's tasks in serving order. First tasks past the starvation limit, longest wait first (one per
   * partition); then the first others, at most `countMax`.
   */
  tasksOf(
    { user }: Next,
    countMax: number,
  ): { readonly late: readonly TaskRow[]; readonly others: readonly TaskRow[] } {
    const late = lateTasks(this.#sizes, user, this.#isOut);
    const others = firstTasks(user, countMax, this.#isOut).filter((task) => !late.includes(task));
    return { late, others };
  }

  /** Ends the round. Must be called: only then are excluded members back in the state's queues. */
  close(): void {
    this.#projects.close();
    this.#users.close();
  }

  #followGrant({ queue, project }: Next): void {
    this.#granted = undefined;
    // With the granted agent, assignable tasks may have changed in any queue.
    for (const best of this.#bests) best.task = undefined;
    this.#forget(
      (best) => this.#isByTask || best.queue === queue || best.project?.member.row === project.row,
    );
  }

  /** Forgets the best of the affected queues. */
  #forget(isAffected: (best: QueueBest) => boolean): void {
    this.#first = undefined;
    for (const best of this.#bests) if (isAffected(best)) best.project = undefined;
  }

  #drop(at: number): void {
    this.#first = undefined;
    this.#bests[at] = this.#bests.at(-1) as QueueBest;
    this.#bests.pop();
  }

  #findFirst(): QueueBest | undefined {
    let first: QueueBest | undefined;
    for (let at = this.#bests.length - 1; at >= 0; at -= 1) {
      const best = this.#bests[at] as QueueBest;
      if (best.project === undefined && !this.#look(best)) this.#drop(at);
      else if (first === undefined || this.#isBefore(best, first)) first = best;
    }
    return first;
  }

  /** Finds a queue's best. @returns whether it has one */
  #look(best: QueueBest): boolean {
    best.user = undefined;
    best.task = undefined;
    const { queue } = best;
    for (
      let project = this.#projects.best(queue);
      project !== undefined;
      project = this.#projects.best(queue)
    ) {
      if (!this.#isOutOfRound(project.member)) {
        best.project = project;
        return true;
      }
      this.#projects.exclude(queue, project.member);
    }
    return false;
  }

  #isOutOfRound(project: QueueProject): boolean {
    if (this.#outProjects.size > 0 && this.#outProjects.has(project.row)) return true;
    return this.#mayLackUsers && this.#bestUserOf(project) === undefined;
  }

  #bestUserOf(project: QueueProject): Best<QueueUser> | undefined {
    for (let best = this.#users.best(project); best !== undefined; best = this.#users.best(project)) {
      if (this.#outPartitions.size === 0 || firstTask(best.member, this.#isOut) !== undefined) return best;
      this.#users.exclude(project, best.member);
    }
    return undefined;
  }

  /**
   * By project; within a project by user; within a user by task: past the starvation limit by age, else by (priority,
   * submission).
   */
  #isBefore(a: QueueBest, b: QueueBest): boolean {
    const byProject = compareClaims(
      (a.project as Best<QueueProject>).claim,
      (b.project as Best<QueueProject>).claim,
    );
    if (byProject !== 0) return byProject < 0;
    const byUser = compareClaims(this.#userOf(a).claim, this.#userOf(b).claim);
    return (byUser === 0 ? compareClaims(this.#taskClaimOf(a), this.#taskClaimOf(b)) : byUser) < 0;
  }

  #userOf(best: QueueBest): Best<QueueUser> {
    best.user ??= this.#bestUserOf((best.project as Best<QueueProject>).member) as Best<QueueUser>;
    return best.user;
  }

  #taskClaimOf(best: QueueBest): Claim {
    best.task ??= this.#claimOfTasks(this.#userOf(best).member);
    return best.task;
  }

  /**
   * The claim of a user's tasks. Where the tasks may differ in eligible agents, only assignable tasks count. Otherwise
   * the first task stands for all: without an agent for it, its queue is found to be out.
   */
  #claimOfTasks(user: QueueUser): Claim {
    if (isBudgeted(this.#state, user.project.row)) return this.#claimOfTakeable(user);
    if (this.#outPartitions.size === 0) {
      return isTaskPastStarvationLimit(this.#sizes, { queuedTurn: user.oldestTurn }, user)
        ? starvationLimitTaskClaim(user.oldestOrder)
        : taskClaim(user.firstPriority, user.firstSequence);
    }
    const oldest = this.#oldestOf(user);
    return isTaskPastStarvationLimit(this.#sizes, oldest, user)
      ? starvationLimitTaskClaim(oldest.queuedOrder)
      : claimOfTask(this.#firstOf(user));
  }

  #claimOfTakeable(user: QueueUser): Claim {
    const late = lateTasks(this.#sizes, user, this.#isOut).find(this.#isTakeable);
    if (late !== undefined) return starvationLimitTaskClaim(late.queuedOrder);
    return claimOfTask(this.#firstTakeable(user) ?? this.#firstOf(user));
  }

  /**
   * The task that a user claims by, where tasks are compared before their agents are searched. Tasks of one partition
   * have the same agents, unless a budget downgrades some.
   */
  #firstTakeable(user: QueueUser): TaskRow | undefined {
    const first = firstTask(user, this.#isOut);
    if (first === undefined || this.#isTakeable(first)) return first;
    const countMax = isBudgeted(this.#state, user.project.row) ? limits.budgetLookAhead : 1;
    let earliest: TaskRow | undefined;
    for (const partition of user.partitions) {
      const task = this.#isOut(partition)
        ? undefined
        : partition.tasks.first(countMax).find(this.#isTakeable);
      if (task !== undefined && (earliest === undefined || isServedEarlier(task, earliest))) earliest = task;
    }
    return earliest;
  }

  #firstOf(user: QueueUser): TaskRow {
    return this.#outPartitions.size === 0 ? user.first : (firstTask(user, this.#isOut) as TaskRow);
  }

  #oldestOf(user: QueueUser): TaskRow {
    return this.#outPartitions.size === 0 ? user.oldest : (oldestTask(user, this.#isOut) as TaskRow);
  }

  #nextOf(best: QueueBest): Next {
    const project = best.project as Best<QueueProject>;
    const user = this.#userOf(best);
    const isLate = this.#taskClaimOf(best).class === 0;
    const task = isLate ? this.#oldestOf(user.member) : this.#firstOf(user.member);
    return {
      queue: best.queue,
      project: project.member,
      user: user.member,
      task,
      bases: { project: basisOf(project.claim), user: basisOf(user.claim) },
    };
  }
}
