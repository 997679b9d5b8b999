// Whose turn it is, during one round (docs/scheduling.md, "Whose turn"): of all lanes that somebody may serve, the
// project, its user and that user's task that go next. Not here: which agent takes it (pool.ts), and what gates and
// budgets say (planner.ts), which tells what is out.
//
// What is out of the round is taken out of the state's own queues, and put back by `close`: until then the state is
// borrowed, and nobody else may look at it. In between nothing but assignments is applied to it.
//
// A grant changes the claims of one project and of one of its users, and moves virtual time on. So a lane's best is
// looked for again only where that project was the best, and where virtual time has reached somebody; with the same
// outcome as if all lanes were compared anew.

import { type HeapItem, IndexedHeap } from "../core/indexed-heap.ts";
import { isServedEarlier } from "../core/lanes.ts";
import type { Turn } from "../core/receipt.ts";
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
import { basisOf, compareClaims } from "./claim.ts";
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
  readonly turn: Turn;
}

/** One lane's best. */
interface LaneTurn extends HeapItem {
  readonly lane: Lane;
  readonly projects: Level<LaneProject>;
  project: Best<LaneProject> | undefined;
  user: Best<LaneUser> | undefined;
  /** Looked for when it is asked for: most lanes that are looked at do not have the next turn. */
  task: TaskRow | undefined;
  isPastCeiling: boolean;
}

export class TurnOrder {
  readonly #turns = new IndexedHeap<LaneTurn>((a, b) => this.#isBefore(a, b));
  readonly #usersOf = new Map<LaneProject, Level<LaneUser>>();
  readonly #opened: LaneTurn[] = [];
  readonly #outQueues = new Set<TaskQueue>();
  readonly #outProjects = new Set<ProjectRow>();
  readonly #sizes: RoundSizes;
  readonly #makeLevels: LevelMaker;
  readonly #state: SwarmState;
  /** What was granted since `next` was called last. */
  #granted: Next | undefined;
  readonly #isOut = (queue: TaskQueue) => this.#outQueues.size > 0 && this.#outQueues.has(queue);

  /** @param lanes that somebody may serve, none of them empty */
  constructor(state: SwarmState, at: Instant, lanes: readonly Lane[]) {
    this.#state = state;
    this.#sizes = new RoundSizes(state.policy.ceiling);
    this.#makeLevels = new LevelMaker({
      state,
      at,
      lanes,
      sizes: this.#sizes,
      bestUserOf: (project) => this.#bestUserOf(project),
      firstTaskOf: (user) => firstTask(user, this.#isOut),
    });
    for (const lane of lanes) {
      const turn: LaneTurn = {
        heapAt: -1,
        lane,
        projects: this.#makeLevels.ofProjects(lane),
        project: undefined,
        user: undefined,
        task: undefined,
        isPastCeiling: false,
      };
      this.#opened.push(turn);
      if (this.#look(turn)) this.#turns.push(turn);
    }
  }

  /** Whose turn it is; the same until something is told. Undefined when nobody is left. */
  next(): Next | undefined {
    if (this.#granted !== undefined) this.#followGrant(this.#granted);
    const turn = this.#turns.peek();
    return turn === undefined ? undefined : nextOf(turn, this.#taskOf(turn));
  }

  /** A task of whose turn it is is about to be assigned; it is by the time that `next` is called. */
  granting(next: Next): void {
    this.#sizes.keep(next.lane, next.project, next.user);
    this.#granted = next;
  }

  /** Nobody can take anything of the lane whose turn it is. */
  excludeLane(): void {
    const turn = this.#turns.peek();
    if (turn !== undefined) this.#turns.remove(turn);
  }

  /** Nothing of the project may be assigned. */
  excludeProject(row: ProjectRow): void {
    this.#outProjects.add(row);
    this.#lookAgain(({ project }) => project?.member.row === row);
  }

  /** Nothing of the user whose turn it is fits. */
  excludeUser({ lane, project }: Next): void {
    this.#levelOf(project).excludeBest();
    this.#lookAgain((turn) => turn.lane === lane);
  }

  /** Whoever may have these tasks has no place free. */
  excludeQueue(queue: TaskQueue): void {
    this.#outQueues.add(queue);
    this.#lookAgain(({ lane }) => lane === queue.user.project.lane);
  }

  /** The tasks of whose turn it is in the order they are served: those past the ceiling, longest wait first (of
   *  each queue one), then the first others, at most `countMax`. */
  tasksOf(
    { user }: Next,
    countMax: number,
  ): { readonly late: readonly TaskRow[]; readonly others: readonly TaskRow[] } {
    const late = user.queues
      .flatMap((queue) => (this.#isOut(queue) || queue.oldest === undefined ? [] : [queue.oldest]))
      .filter((task) => this.#isPastCeiling(user, task))
      .sort((a, b) => a.queuedOrder - b.queuedOrder);
    const others = firstTasks(user, this.#isOut, countMax).filter((task) => !late.includes(task));
    return { late, others };
  }

  /** The round is over. Must be called: what was out of it is in the state's queues again only then. */
  close(): void {
    for (const { projects } of this.#opened) projects.close();
    for (const users of this.#usersOf.values()) users.close();
  }

  #followGrant({ lane, project }: Next): void {
    this.#granted = undefined;
    const isByClock = this.#state.policy.projectTurn === "clock";
    const { virtualTime } = this.#state;
    this.#lookAgain(
      (turn) =>
        turn.lane === lane ||
        turn.project?.member.row === project.row ||
        (isByClock && turn.lane.projects.isReachedBy(virtualTime)),
    );
  }

  /** Of the lanes that still have a best. */
  #lookAgain(isAffected: (turn: LaneTurn) => boolean): void {
    for (const turn of this.#opened) {
      if (turn.heapAt === -1 || !isAffected(turn)) continue;
      this.#turns.remove(turn);
      if (this.#look(turn)) this.#turns.push(turn);
    }
  }

  /** Brings a lane's best up to date. @returns whether it has one */
  #look(turn: LaneTurn): boolean {
    for (let project = turn.projects.best(); project !== undefined; project = turn.projects.best()) {
      const isOut = this.#outProjects.size > 0 && this.#outProjects.has(project.member.row);
      const user = isOut ? undefined : this.#bestUserOf(project.member);
      if (user !== undefined) {
        turn.project = project;
        turn.user = user;
        turn.task = undefined;
        return true;
      }
      turn.projects.excludeBest();
    }
    return false;
  }

  #bestUserOf(project: LaneProject): Best<LaneUser> | undefined {
    const users = this.#levelOf(project);
    for (let user = users.best(); user !== undefined; user = users.best()) {
      if (this.#outQueues.size === 0 || firstTask(user.member, this.#isOut) !== undefined) return user;
      users.excludeBest();
    }
    return undefined;
  }

  #levelOf(project: LaneProject): Level<LaneUser> {
    const known = this.#usersOf.get(project);
    if (known !== undefined) return known;
    const level = this.#makeLevels.ofUsers(project);
    this.#usersOf.set(project, level);
    return level;
  }

  /** The longest queued, once it is past the ceiling; else the first. */
  #taskOf(turn: LaneTurn): TaskRow {
    if (turn.task !== undefined) return turn.task;
    const { member } = turn.user as Best<LaneUser>;
    const oldest = oldestTask(member, this.#isOut) as TaskRow;
    turn.isPastCeiling = this.#isPastCeiling(member, oldest);
    turn.task = turn.isPastCeiling ? oldest : (firstTask(member, this.#isOut) as TaskRow);
    return turn.task;
  }

  /** By project; within one by user; for one user by task: past the ceiling by age, else (priority, submission). */
  #isBefore(a: LaneTurn, b: LaneTurn): boolean {
    const byProject = compareClaims(claimOf(a.project), claimOf(b.project));
    if (byProject !== 0) return byProject < 0;
    const byUser = compareClaims(claimOf(a.user), claimOf(b.user));
    if (byUser !== 0) return byUser < 0;
    const [first, second] = [this.#taskOf(a), this.#taskOf(b)];
    if (a.isPastCeiling !== b.isPastCeiling) return a.isPastCeiling;
    return a.isPastCeiling ? first.queuedOrder < second.queuedOrder : isServedEarlier(first, second);
  }

  #isPastCeiling(user: LaneUser, task: TaskRow): boolean {
    return this.#sizes.turnsWaited(task, user) >= this.#sizes.ceilingOf(this.#sizes.tasks(user));
  }
}

function nextOf({ lane, project, user }: LaneTurn, task: TaskRow): Next {
  return {
    lane,
    project: (project as Best<LaneProject>).member,
    user: (user as Best<LaneUser>).member,
    task,
    turn: {
      project: basisOf((project as Best<LaneProject>).claim),
      user: basisOf((user as Best<LaneUser>).claim),
    },
  };
}

function claimOf(best: Best<LaneProject> | Best<LaneUser> | undefined) {
  return (best as Best<LaneProject>).claim;
}
