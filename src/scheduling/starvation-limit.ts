// The wait after which a member goes next, regardless of the rule (docs/scheduling.md, class 0): so many of the level's
// ticks or turns for each waiting member.

import type { Member, Unit } from "../state/clock-queue.ts";
import { nothingIsOut } from "../state/service-order.ts";
import type {
  QueueProject,
  QueueUser,
  SwarmState,
  TaskPartition,
  TaskQueue,
  TaskRow,
} from "../state/state.ts";
import type { RoundSizes } from "./round-sizes.ts";

/** The starvation limit of a level. */
export interface StarvationLimitTerms {
  readonly unit: Unit;
  /** Ticks or turns by now. */
  readonly now: number;
  /**
   * The wait after which a member goes next: the policy's starvation limit times the members at the round's start.
   * Infinite without a starvation limit.
   */
  readonly after: number;
}

/** Whether a member has waited past the starvation limit. */
export function isPastStarvationLimit(member: Member, terms: StarvationLimitTerms): boolean {
  return waited(member, terms) >= terms.after;
}

/** How long a member has waited, in the unit of the terms. */
export function waited({ sinceTick, sinceTurn }: Member, { unit, now }: StarvationLimitTerms): number {
  return now - (unit === "ticks" ? sinceTick : sinceTurn);
}

/** A project's wait counts in ticks of the queue's kind. */
export function starvationLimitOfProjects(sizes: RoundSizes, queue: TaskQueue): StarvationLimitTerms {
  return { unit: "ticks", now: queue.kindRow.tick, after: sizes.starvationLimitOf(sizes.projects(queue)) };
}

/**
 * A user's wait counts in turns of its project in the queue: in ticks, all users of a project among many would be past
 * the limit. Where projects take no turns, in ticks too.
 */
export function starvationLimitOfUsers(
  state: SwarmState,
  sizes: RoundSizes,
  project: QueueProject,
): StarvationLimitTerms {
  const after = sizes.starvationLimitOf(sizes.users(project));
  if (state.policy.projectTurn === "none") return { unit: "ticks", now: project.queue.kindRow.tick, after };
  return { unit: "turns", now: sizes.turns(project), after };
}

/**
 * Whether a project of the queue may be past the starvation limit, by present values. Within a round sizes only sink,
 * turns only rise and ticks stand still. So a member within the limit by present values was within the limit at the
 * round's start.
 */
export function mayBePastStarvationLimitOfProjects(
  sizes: RoundSizes,
  { projects, kindRow }: TaskQueue,
): boolean {
  return kindRow.tick - projects.longestSince("ticks") >= sizes.starvationLimitOf(projects.size);
}

/** Whether a user of the project may be past the limit, where waits count in turns. */
export function mayBePastStarvationLimitOfUsers(sizes: RoundSizes, { users, turns }: QueueProject): boolean {
  return turns - users.longestSince("turns") >= sizes.starvationLimitOf(users.size);
}

/** Whether a task has waited past the starvation limit, in turns of its user in the queue since the task was queued. */
export function isTaskPastStarvationLimit(
  sizes: RoundSizes,
  task: Pick<TaskRow, "queuedTurn">,
  user: QueueUser,
): boolean {
  // First by present values, which saves the exact check, as above.
  if (user.turns - task.queuedTurn < sizes.starvationLimitOf(user.size)) return false;
  return sizes.turnsWaited(task, user) >= sizes.starvationLimitOf(sizes.tasks(user));
}

/**
 * The longest waiting task of each of a user's partitions that is not out, if past the starvation limit: longest wait
 * first.
 */
export function lateTasks(
  sizes: RoundSizes,
  user: QueueUser,
  isOut: (partition: TaskPartition) => boolean = nothingIsOut,
): TaskRow[] {
  return user.partitions
    .flatMap((partition) => (isOut(partition) || partition.oldest === undefined ? [] : [partition.oldest]))
    .filter((task) => isTaskPastStarvationLimit(sizes, task, user))
    .sort((a, b) => a.queuedOrder - b.queuedOrder);
}

/** Whether a user, or its project, goes next because of its wait. */
export function goesByStarvationLimit(state: SwarmState, sizes: RoundSizes, user: QueueUser): boolean {
  const { project } = user;
  if (isPastStarvationLimit(user, starvationLimitOfUsers(state, sizes, project))) return true;
  return (
    state.policy.projectTurn !== "none" &&
    isPastStarvationLimit(project, starvationLimitOfProjects(sizes, project.queue))
  );
}
