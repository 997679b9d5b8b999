// How long somebody waits before it goes next, whatever the rule says (docs/scheduling.md, class 0): after so many of
// what its level has to give, for each that waits there.

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

/** What the starvation limit asks of a level. */
export interface StarvationLimitTerms {
  readonly unit: Unit;
  /** How many there were by now. */
  readonly now: number;
  /** After so many whoever waits goes next: the policy's starvation limit for each member at the round's start.
   *  Infinite where there is no starvation limit. */
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

/** A project's wait is counted in ticks of the queue's kind. */
export function starvationLimitOfProjects(sizes: RoundSizes, queue: TaskQueue): StarvationLimitTerms {
  return { unit: "ticks", now: queue.kindRow.tick, after: sizes.starvationLimitOf(sizes.projects(queue)) };
}

/** A user's in turns of its project there: in ticks, all users of a project among many would be past it. Where projects
 *  take no turns, in ticks too. */
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
 * Whether a project of the queue may be past the starvation limit, by what is there now: within a round sizes only
 * sink, turns only rise and ticks stand still, so that whoever is not past it by these was not past it when the round
 * began.
 */
export function mayBePastStarvationLimitOfProjects(
  sizes: RoundSizes,
  { projects, kindRow }: TaskQueue,
): boolean {
  return kindRow.tick - projects.longestSince("ticks") >= sizes.starvationLimitOf(projects.size);
}

/** The same of a user of the project there, where waits are counted in turns. */
export function mayBePastStarvationLimitOfUsers(sizes: RoundSizes, { users, turns }: QueueProject): boolean {
  return turns - users.longestSince("turns") >= sizes.starvationLimitOf(users.size);
}

/** Whether a task of a user has waited past the starvation limit: in turns that its user had in the queue since it was
 *  queued. */
export function isTaskPastStarvationLimit(
  sizes: RoundSizes,
  task: Pick<TaskRow, "queuedTurn">,
  user: QueueUser,
): boolean {
  // First by what is there now, which spares the exact look: as above.
  if (user.turns - task.queuedTurn < sizes.starvationLimitOf(user.size)) return false;
  return sizes.turnsWaited(task, user) >= sizes.starvationLimitOf(sizes.tasks(user));
}

/** Of each queue of a user that is not out the task that waits longest, if it is past the starvation limit: longest
 *  wait first. */
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

/** Whether a user, or its project, goes next because of how long it waited. */
export function goesByStarvationLimit(state: SwarmState, sizes: RoundSizes, user: QueueUser): boolean {
  const { project } = user;
  if (isPastStarvationLimit(user, starvationLimitOfUsers(state, sizes, project))) return true;
  return (
    state.policy.projectTurn !== "none" &&
    isPastStarvationLimit(project, starvationLimitOfProjects(sizes, project.queue))
  );
}
