// Whose turn it is, during one round (docs/scheduling.md, "Whose turn"): of all queues that somebody may serve, the
// project, its user and that user's task that go next. Not here: which agent takes it (pool.ts), and what gates and
// budgets say (planner.ts), which tells what is out.
//
// What is out of the round is taken out of the state's own queues, and put back by `close`: until then the state is
// borrowed, and nobody else may look at it. In between nothing but assignments is applied to it.
//
// A grant changes the claims of one project and of one of its users. So a queue's best is looked for again only where
// that project was the best; with the same outcome as if all queues were compared anew. Users are looked for where
// projects are equal, that is where one leads in several queues, and tasks where users are.

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

/** Whose turn it is. */
export interface Next {
  readonly queue: TaskQueue;
  readonly project: QueueProject;
  readonly user: QueueUser;
  readonly task: TaskRow;
  /** By what it is theirs. */
  readonly bases: TurnBases;
}

/** One queue's best; each undefined while nobody has asked for it. */
interface QueueBest {
  readonly queue: TaskQueue;
  project: Best<QueueProject> | undefined;
  user: Best<QueueUser> | undefined;
  task: Claim | undefined;
}

export class TurnOrder {
  /** Of the queues that have a best, as far as is known. */
  readonly #bests: QueueBest[];
  readonly #projects: Level<TaskQueue, QueueProject>;
  readonly #users: Level<QueueProject, QueueUser>;
  readonly #outPartitions = new Set<TaskPartition>();
  readonly #outProjects = new Set<ProjectRow>();
  readonly #isTakeable: (task: TaskRow) => boolean;
  /** Whether claims stand on single tasks: whether those may be had changes with each grant, in any queue. */
  readonly #isByTask: boolean;
  /** Whether somebody may wait none of whose tasks may be had. */
  #mayLackUsers: boolean;
  readonly #state: SwarmState;
  readonly #sizes: RoundSizes;
  /** The first of the bests, until something is told. */
  #first: QueueBest | undefined;
  /** What was granted since `next` was called last. */
  #granted: Next | undefined;
  readonly #isOut = (partition: TaskPartition) =>
    this.#outPartitions.size > 0 && this.#outPartitions.has(partition);

  /** @param queues that somebody may serve, none of them empty
   *  @param isTakeable whether somebody may have the task now, its budgets' room apart; only ever turns to no */
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

  /** Whose turn it is; the same until something is told. Undefined when nobody is left. */
  next(): Next | undefined {
    if (this.#granted !== undefined) this.#followGrant(this.#granted);
    this.#first ??= this.#findFirst();
    return this.#first === undefined ? undefined : this.#nextOf(this.#first);
  }

  /** A task of whose turn it is is about to be assigned; it is by the time that `next` is called. */
  granting(next: Next): void {
    this.#sizes.keep(next.queue, next.project, next.user);
    this.#granted = next;
  }

  /** Nobody can take anything of the queue whose turn it is. */
  excludeQueue({ queue }: Next): void {
    const at = this.#bests.findIndex((best) => best.queue === queue);
    assert(at !== -1, "the queue whose turn it is takes part");
    this.#drop(at);
  }

  /** Nothing of the project may be assigned. */
  excludeProject(row: ProjectRow): void {
    this.#outProjects.add(row);
    this.#forget(({ project }) => project?.member.row === row);
  }

  /** Nothing of the user whose turn it is fits. */
  excludeUser({ queue, project, user }: Next): void {
    this.#users.exclude(project, user);
    this.#mayLackUsers = true;
    this.#forget((best) => best.queue === queue);
  }

  /** Whoever may have these tasks has no place free. */
  excludePartition(partition: TaskPartition): void {
    this.#outPartitions.add(partition);
    this.#mayLackUsers = true;
    this.#forget(({ queue }) => queue === partition.user.project.queue);
  }

  /** The tasks of whose turn it is in the order they are served: those past the starvation limit, longest wait first
   *  (of each queue one), then the first others, at most `countMax`. */
  tasksOf(
    { user }: Next,
    countMax: number,
  ): { readonly late: readonly TaskRow[]; readonly others: readonly TaskRow[] } {
    const late = lateTasks(this.#sizes, user, this.#isOut);
    const others = firstTasks(user, countMax, this.#isOut).filter((task) => !late.includes(task));
    return { late, others };
  }

  /** The round is over. Must be called: what was out of it is in the state's queues again only then. */
  close(): void {
    this.#projects.close();
    this.#users.close();
  }

  #followGrant({ queue, project }: Next): void {
    this.#granted = undefined;
    // Whether a task may be had may have changed with the agent that was granted it, in any queue.
    for (const best of this.#bests) best.task = undefined;
    this.#forget(
      (best) => this.#isByTask || best.queue === queue || best.project?.member.row === project.row,
    );
  }

  /** What was known of these queues may not hold any more. */
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

  /** Looks for a queue's best. @returns whether it has one */
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

  /** By project; within one by user; for one user by task: past the starvation limit by age, else (priority,
   *  submission). */
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

  /** Where its tasks may differ in who may have them, only those count that somebody may; else the first stands for
   *  all, and when nobody may have it its queue is found to be out. */
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

  /** What a user claims by, where tasks are compared before anybody has looked for their agents. One queue's tasks are
   *  for the same agents, unless a budget makes some of them cheaper. */
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
