// Whose turn it is, during one round (docs/scheduling.md, "Whose turn"): of all lanes that somebody may serve, the
// project, its user and that user's task that go next. Not here: which agent takes it (pool.ts), and what gates and
// budgets say (planner.ts), which tells what is out.
//
// What is out of the round is taken out of the state's own queues, and put back by `close`: until then the state is
// borrowed, and nobody else may look at it. In between nothing but assignments is applied to it.
//
// A grant changes the claims of one project and of one of its users. So a lane's best is looked for again only where
// that project was the best; with the same outcome as if all lanes were compared anew. Users are looked for where
// projects are equal, that is where one leads in several lanes, and tasks where users are.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TurnBases } from "../state/receipt.ts";
import { firstTask, firstTasks, isServedEarlier, oldestTask } from "../state/service-order.ts";
import type {
  Lane,
  LaneProject,
  LaneUser,
  ProjectRow,
  SwarmState,
  TaskQueue,
  TaskRow,
} from "../state/state.ts";
import { isTaskPastCeiling, lateTasks } from "./ceiling.ts";
import { basisOf, type Claim, ceilingTaskClaim, claimOfTask, compareClaims, taskClaim } from "./claim.ts";
import { isBudgeted } from "./gates.ts";
import type { Best, Level } from "./level.ts";
import { LevelMaker } from "./level-maker.ts";
import { RoundSizes } from "./round-sizes.ts";

/** Whose turn it is. */
export interface Next {
  readonly lane: Lane;
  readonly project: LaneProject;
  readonly user: LaneUser;
  readonly task: TaskRow;
  /** By what it is theirs. */
  readonly bases: TurnBases;
}

/** One lane's best; each undefined while nobody has asked for it. */
interface LaneBest {
  readonly lane: Lane;
  project: Best<LaneProject> | undefined;
  user: Best<LaneUser> | undefined;
  task: Claim | undefined;
}

export class TurnOrder {
  /** Of the lanes that have a best, as far as is known. */
  readonly #bests: LaneBest[];
  readonly #projects: Level<Lane, LaneProject>;
  readonly #users: Level<LaneProject, LaneUser>;
  readonly #outQueues = new Set<TaskQueue>();
  readonly #outProjects = new Set<ProjectRow>();
  readonly #isTakeable: (task: TaskRow) => boolean;
  /** Whether claims stand on single tasks: whether those may be had changes with each grant, in any lane. */
  readonly #isByTask: boolean;
  /** Whether somebody may wait none of whose tasks may be had. */
  #mayLackUsers: boolean;
  readonly #state: SwarmState;
  readonly #sizes: RoundSizes;
  /** The first of the bests, until something is told. */
  #first: LaneBest | undefined;
  /** What was granted since `next` was called last. */
  #granted: Next | undefined;
  readonly #isOut = (queue: TaskQueue) => this.#outQueues.size > 0 && this.#outQueues.has(queue);

  /** @param lanes that somebody may serve, none of them empty
   *  @param isTakeable whether somebody may have the task now, its budgets' room apart; only ever turns to no */
  constructor(
    state: SwarmState,
    at: Instant,
    lanes: readonly Lane[],
    isTakeable: (task: TaskRow) => boolean,
  ) {
    this.#state = state;
    this.#isTakeable = isTakeable;
    const { projectTurn, userTurn } = state.policy;
    this.#isByTask = projectTurn === "fifo" || userTurn === "fifo";
    this.#mayLackUsers = this.#isByTask;
    this.#sizes = new RoundSizes(state.policy.ceiling);
    const makeLevels = new LevelMaker({
      state,
      at,
      lanes,
      sizes: this.#sizes,
      bestUserOf: (project) => this.#bestUserOf(project),
      firstTaskOf: (user) => this.#firstTakeable(user),
    });
    this.#projects = makeLevels.ofProjects();
    this.#users = makeLevels.ofUsers();
    this.#bests = lanes.map((lane) => ({ lane, project: undefined, user: undefined, task: undefined }));
  }

  /** Whose turn it is; the same until something is told. Undefined when nobody is left. */
  next(): Next | undefined {
    if (this.#granted !== undefined) this.#followGrant(this.#granted);
    this.#first ??= this.#findFirst();
    return this.#first === undefined ? undefined : this.#nextOf(this.#first);
  }

  /** A task of whose turn it is is about to be assigned; it is by the time that `next` is called. */
  granting(next: Next): void {
    this.#sizes.keep(next.lane, next.project, next.user);
    this.#granted = next;
  }

  /** Nobody can take anything of the lane whose turn it is. */
  excludeLane({ lane }: Next): void {
    const at = this.#bests.findIndex((best) => best.lane === lane);
    assert(at !== -1, "the lane whose turn it is takes part");
    this.#drop(at);
  }

  /** Nothing of the project may be assigned. */
  excludeProject(row: ProjectRow): void {
    this.#outProjects.add(row);
    this.#forget(({ project }) => project?.member.row === row);
  }

  /** Nothing of the user whose turn it is fits. */
  excludeUser({ lane, project, user }: Next): void {
    this.#users.exclude(project, user);
    this.#mayLackUsers = true;
    this.#forget((best) => best.lane === lane);
  }

  /** Whoever may have these tasks has no place free. */
  excludeQueue(queue: TaskQueue): void {
    this.#outQueues.add(queue);
    this.#mayLackUsers = true;
    this.#forget(({ lane }) => lane === queue.user.project.lane);
  }

  /** The tasks of whose turn it is in the order they are served: those past the ceiling, longest wait first (of
   *  each queue one), then the first others, at most `countMax`. */
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

  #followGrant({ lane, project }: Next): void {
    this.#granted = undefined;
    // Whether a task may be had may have changed with the agent that was granted it, in any lane.
    for (const best of this.#bests) best.task = undefined;
    this.#forget((best) => this.#isByTask || best.lane === lane || best.project?.member.row === project.row);
  }

  /** What was known of these lanes may not hold any more. */
  #forget(isAffected: (best: LaneBest) => boolean): void {
    this.#first = undefined;
    for (const best of this.#bests) if (isAffected(best)) best.project = undefined;
  }

  #drop(at: number): void {
    this.#first = undefined;
    this.#bests[at] = this.#bests.at(-1) as LaneBest;
    this.#bests.pop();
  }

  #findFirst(): LaneBest | undefined {
    let first: LaneBest | undefined;
    for (let at = this.#bests.length - 1; at >= 0; at -= 1) {
      const best = this.#bests[at] as LaneBest;
      if (best.project === undefined && !this.#look(best)) this.#drop(at);
      else if (first === undefined || this.#isBefore(best, first)) first = best;
    }
    return first;
  }

  /** Looks for a lane's best. @returns whether it has one */
  #look(best: LaneBest): boolean {
    best.user = undefined;
    best.task = undefined;
    const { lane } = best;
    for (
      let project = this.#projects.best(lane);
      project !== undefined;
      project = this.#projects.best(lane)
    ) {
      if (!this.#isOutOfRound(project.member)) {
        best.project = project;
        return true;
      }
      this.#projects.exclude(lane, project.member);
    }
    return false;
  }

  #isOutOfRound(project: LaneProject): boolean {
    if (this.#outProjects.size > 0 && this.#outProjects.has(project.row)) return true;
    return this.#mayLackUsers && this.#bestUserOf(project) === undefined;
  }

  #bestUserOf(project: LaneProject): Best<LaneUser> | undefined {
    for (let best = this.#users.best(project); best !== undefined; best = this.#users.best(project)) {
      if (this.#outQueues.size === 0 || firstTask(best.member, this.#isOut) !== undefined) return best;
      this.#users.exclude(project, best.member);
    }
    return undefined;
  }

  /** By project; within one by user; for one user by task: past the ceiling by age, else (priority, submission). */
  #isBefore(a: LaneBest, b: LaneBest): boolean {
    const byProject = compareClaims(
      (a.project as Best<LaneProject>).claim,
      (b.project as Best<LaneProject>).claim,
    );
    if (byProject !== 0) return byProject < 0;
    const byUser = compareClaims(this.#userOf(a).claim, this.#userOf(b).claim);
    return (byUser === 0 ? compareClaims(this.#taskClaimOf(a), this.#taskClaimOf(b)) : byUser) < 0;
  }

  #userOf(best: LaneBest): Best<LaneUser> {
    best.user ??= this.#bestUserOf((best.project as Best<LaneProject>).member) as Best<LaneUser>;
    return best.user;
  }

  #taskClaimOf(best: LaneBest): Claim {
    best.task ??= this.#claimOfTasks(this.#userOf(best).member);
    return best.task;
  }

  /** Where its tasks may differ in who may have them, only those count that somebody may; else the first stands for
   *  all, and when nobody may have it its queue is found to be out. */
  #claimOfTasks(user: LaneUser): Claim {
    if (isBudgeted(this.#state, user.project.row)) return this.#claimOfTakeable(user);
    if (this.#outQueues.size === 0) {
      return isTaskPastCeiling(this.#sizes, { queuedTurn: user.oldestTurn }, user)
        ? ceilingTaskClaim(user.oldestOrder)
        : taskClaim(user.firstPriority, user.firstSequence);
    }
    const oldest = this.#oldestOf(user);
    return isTaskPastCeiling(this.#sizes, oldest, user)
      ? ceilingTaskClaim(oldest.queuedOrder)
      : claimOfTask(this.#firstOf(user));
  }

  #claimOfTakeable(user: LaneUser): Claim {
    const late = lateTasks(this.#sizes, user, this.#isOut).find(this.#isTakeable);
    if (late !== undefined) return ceilingTaskClaim(late.queuedOrder);
    return claimOfTask(this.#firstTakeable(user) ?? this.#firstOf(user));
  }

  /** What a user claims by, where tasks are compared before anybody has looked for their agents. One queue's tasks are
   *  for the same agents, unless a budget makes some of them cheaper. */
  #firstTakeable(user: LaneUser): TaskRow | undefined {
    const first = firstTask(user, this.#isOut);
    if (first === undefined || this.#isTakeable(first)) return first;
    const countMax = isBudgeted(this.#state, user.project.row) ? limits.budgetLookAhead : 1;
    let earliest: TaskRow | undefined;
    for (const queue of user.queues) {
      const task = this.#isOut(queue) ? undefined : queue.tasks.first(countMax).find(this.#isTakeable);
      if (task !== undefined && (earliest === undefined || isServedEarlier(task, earliest))) earliest = task;
    }
    return earliest;
  }

  #firstOf(user: LaneUser): TaskRow {
    return this.#outQueues.size === 0 ? user.first : (firstTask(user, this.#isOut) as TaskRow);
  }

  #oldestOf(user: LaneUser): TaskRow {
    return this.#outQueues.size === 0 ? user.oldest : (oldestTask(user, this.#isOut) as TaskRow);
  }

  #nextOf(best: LaneBest): Next {
    const project = best.project as Best<LaneProject>;
    const user = this.#userOf(best);
    const isLate = this.#taskClaimOf(best).class === 0;
    const task = isLate ? this.#oldestOf(user.member) : this.#firstOf(user.member);
    return {
      lane: best.lane,
      project: project.member,
      user: user.member,
      task,
      bases: { project: basisOf(project.claim), user: basisOf(user.claim) },
    };
  }
}
