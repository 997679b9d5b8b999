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

import type { TurnBases } from "../core/receipt.ts";
import type {
  Lane,
  LaneProject,
  LaneUser,
  ProjectRow,
  SwarmState,
  TaskQueue,
  TaskRow,
} from "../core/state.ts";
import type { Instant } from "../ids.ts";
import { basisOf, type Claim, ceilingTaskClaim, compareClaims, taskClaim } from "./claim.ts";
import type { Best, Level } from "./level.ts";
import { LevelMaker } from "./level-maker.ts";
import { RoundSizes } from "./round-sizes.ts";
import { firstTask, firstTasks, oldestTask } from "./service-order.ts";

/** Whose turn it is. */
export interface Next {
  readonly lane: Lane;
  readonly project: LaneProject;
  readonly user: LaneUser;
  readonly task: TaskRow;
  readonly turn: TurnBases;
}

/** One lane's best; each undefined while nobody has asked for it. */
interface LaneTurn {
  readonly lane: Lane;
  project: Best<LaneProject> | undefined;
  user: Best<LaneUser> | undefined;
  task: Claim | undefined;
}

export class TurnOrder {
  /** Of the lanes that have a best, as far as is known. */
  readonly #turns: LaneTurn[];
  readonly #projects: Level<Lane, LaneProject>;
  readonly #users: Level<LaneProject, LaneUser>;
  readonly #outQueues = new Set<TaskQueue>();
  readonly #outProjects = new Set<ProjectRow>();
  /** Whether somebody waits all of whose tasks may be out. */
  #mayLackUsers = false;
  readonly #sizes: RoundSizes;
  /** Whose turn it is, until something is told. */
  #next: LaneTurn | undefined;
  /** What was granted since `next` was called last. */
  #granted: Next | undefined;
  readonly #isOut = (queue: TaskQueue) => this.#outQueues.size > 0 && this.#outQueues.has(queue);

  /** @param lanes that somebody may serve, none of them empty */
  constructor(state: SwarmState, at: Instant, lanes: readonly Lane[]) {
    this.#sizes = new RoundSizes(state.policy.ceiling);
    const makeLevels = new LevelMaker({
      state,
      at,
      lanes,
      sizes: this.#sizes,
      bestUserOf: (project) => this.#bestUserOf(project),
      firstTaskOf: (user) => firstTask(user, this.#isOut),
    });
    this.#projects = makeLevels.ofProjects();
    this.#users = makeLevels.ofUsers();
    this.#turns = lanes.map((lane) => ({ lane, project: undefined, user: undefined, task: undefined }));
  }

  /** Whose turn it is; the same until something is told. Undefined when nobody is left. */
  next(): Next | undefined {
    if (this.#granted !== undefined) this.#followGrant(this.#granted);
    this.#next ??= this.#first();
    return this.#next === undefined ? undefined : this.#nextOf(this.#next);
  }

  /** A task of whose turn it is is about to be assigned; it is by the time that `next` is called. */
  granting(next: Next): void {
    this.#sizes.keep(next.lane, next.project, next.user);
    this.#granted = next;
  }

  /** Nobody can take anything of the lane whose turn it is. */
  excludeLane({ lane }: Next): void {
    this.#drop(this.#turns.findIndex((turn) => turn.lane === lane));
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
    this.#forget((turn) => turn.lane === lane);
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
    const late = user.queues
      .flatMap((queue) => (this.#isOut(queue) || queue.oldest === undefined ? [] : [queue.oldest]))
      .filter((task) => this.#isPastCeiling(user, task.queuedTurn))
      .sort((a, b) => a.queuedOrder - b.queuedOrder);
    const others = firstTasks(user, this.#isOut, countMax).filter((task) => !late.includes(task));
    return { late, others };
  }

  /** The round is over. Must be called: what was out of it is in the state's queues again only then. */
  close(): void {
    this.#projects.close();
    this.#users.close();
  }

  #followGrant({ lane, project }: Next): void {
    this.#granted = undefined;
    this.#forget((turn) => turn.lane === lane || turn.project?.member.row === project.row);
  }

  /** What was known of these lanes may not hold any more. */
  #forget(isAffected: (turn: LaneTurn) => boolean): void {
    this.#next = undefined;
    for (const turn of this.#turns) if (isAffected(turn)) turn.project = undefined;
  }

  #drop(at: number): void {
    this.#next = undefined;
    this.#turns[at] = this.#turns.at(-1) as LaneTurn;
    this.#turns.pop();
  }

  #first(): LaneTurn | undefined {
    let first: LaneTurn | undefined;
    for (let at = this.#turns.length - 1; at >= 0; at -= 1) {
      const turn = this.#turns[at] as LaneTurn;
      if (turn.project === undefined && !this.#look(turn)) this.#drop(at);
      else if (first === undefined || this.#isBefore(turn, first)) first = turn;
    }
    return first;
  }

  /** Looks for a lane's best. @returns whether it has one */
  #look(turn: LaneTurn): boolean {
    turn.user = undefined;
    turn.task = undefined;
    const { lane } = turn;
    for (let best = this.#projects.best(lane); best !== undefined; best = this.#projects.best(lane)) {
      if (!this.#isOutOfRound(best.member)) {
        turn.project = best;
        return true;
      }
      this.#projects.exclude(lane, best.member);
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
  #isBefore(a: LaneTurn, b: LaneTurn): boolean {
    const byProject = compareClaims(
      (a.project as Best<LaneProject>).claim,
      (b.project as Best<LaneProject>).claim,
    );
    if (byProject !== 0) return byProject < 0;
    const byUser = compareClaims(this.#userOf(a).claim, this.#userOf(b).claim);
    return (byUser === 0 ? compareClaims(this.#taskClaimOf(a), this.#taskClaimOf(b)) : byUser) < 0;
  }

  #userOf(turn: LaneTurn): Best<LaneUser> {
    turn.user ??= this.#bestUserOf((turn.project as Best<LaneProject>).member) as Best<LaneUser>;
    return turn.user;
  }

  #taskClaimOf(turn: LaneTurn): Claim {
    turn.task ??= this.#claimOfTasks(this.#userOf(turn).member);
    return turn.task;
  }

  #claimOfTasks(user: LaneUser): Claim {
    if (this.#outQueues.size === 0) {
      return this.#isPastCeiling(user, user.oldestTurn)
        ? ceilingTaskClaim(user.oldestOrder)
        : taskClaim(user.firstPriority, user.firstSequence);
    }
    const oldest = this.#oldestOf(user);
    if (this.#isPastCeiling(user, oldest.queuedTurn)) return ceilingTaskClaim(oldest.queuedOrder);
    const { spec, sequence } = this.#firstOf(user);
    return taskClaim(spec.priority, sequence);
  }

  #firstOf(user: LaneUser): TaskRow {
    return this.#outQueues.size === 0 ? user.first : (firstTask(user, this.#isOut) as TaskRow);
  }

  #oldestOf(user: LaneUser): TaskRow {
    return this.#outQueues.size === 0 ? user.oldest : (oldestTask(user, this.#isOut) as TaskRow);
  }

  #nextOf(turn: LaneTurn): Next {
    const project = turn.project as Best<LaneProject>;
    const user = this.#userOf(turn);
    const isLate = this.#taskClaimOf(turn).class === 0;
    const task = isLate ? this.#oldestOf(user.member) : this.#firstOf(user.member);
    return {
      lane: turn.lane,
      project: project.member,
      user: user.member,
      task,
      turn: { project: basisOf(project.claim), user: basisOf(user.claim) },
    };
  }

  #isPastCeiling(user: LaneUser, queuedTurn: number): boolean {
    // First by what is there now: within a round sizes only sink and turns only rise.
    if (user.turns - queuedTurn < this.#sizes.ceilingOf(user.size)) return false;
    return this.#sizes.turns(user) - queuedTurn >= this.#sizes.ceilingOf(this.#sizes.tasks(user));
  }
}
