// How long somebody waits before it goes next, whatever the rule says (docs/scheduling.md, class 0): after so many of
// what its level has to give, for each that waits there.

import type { Member, Unit } from "../state/clock-queue.ts";
import { nothingIsOut } from "../state/service-order.ts";
import type { Lane, LaneProject, LaneUser, SwarmState, TaskQueue, TaskRow } from "../state/state.ts";
import type { RoundSizes } from "./round-sizes.ts";

/** What the ceiling asks of a level. */
export interface CeilingTerms {
  readonly unit: Unit;
  /** How many there were by now. */
  readonly now: number;
  /** After so many whoever waits goes next: the policy's ceiling for each member at the round's start. Infinite
   *  where there is no ceiling. */
  readonly after: number;
}

/** Whether a member has waited past the ceiling. */
export function isPastCeiling(member: Member, terms: CeilingTerms): boolean {
  return waited(member, terms) >= terms.after;
}

/** How long a member has waited, in the unit of the terms. */
export function waited({ sinceTick, sinceTurn }: Member, { unit, now }: CeilingTerms): number {
  return now - (unit === "ticks" ? sinceTick : sinceTurn);
}

/** A project's wait is counted in ticks of the lane's kind. */
export function ceilingOfProjects(sizes: RoundSizes, lane: Lane): CeilingTerms {
  return { unit: "ticks", now: lane.kindRow.tick, after: sizes.ceilingOf(sizes.projects(lane)) };
}

/** A user's in turns of its project there: in ticks, all users of a project among many would be past it. Where projects
 *  take no turns, in ticks too. */
export function ceilingOfUsers(state: SwarmState, sizes: RoundSizes, project: LaneProject): CeilingTerms {
  const after = sizes.ceilingOf(sizes.users(project));
  if (state.policy.projectTurn === "none") return { unit: "ticks", now: project.lane.kindRow.tick, after };
  return { unit: "turns", now: sizes.turns(project), after };
}

/**
 * Whether a project of the lane may be past the ceiling, by what is there now: within a round sizes only sink, turns
 * only rise and ticks stand still, so that whoever is not past it by these was not past it when the round began.
 */
export function mayBePastCeilingOfProjects(sizes: RoundSizes, { projects, kindRow }: Lane): boolean {
  return kindRow.tick - projects.longestSince("ticks") >= sizes.ceilingOf(projects.size);
}

/** The same of a user of the project there, where waits are counted in turns. */
export function mayBePastCeilingOfUsers(sizes: RoundSizes, { users, turns }: LaneProject): boolean {
  return turns - users.longestSince("turns") >= sizes.ceilingOf(users.size);
}

/** Whether a task of a user has waited past the ceiling: in turns that its user had in the lane since it was queued. */
export function isTaskPastCeiling(
  sizes: RoundSizes,
  task: Pick<TaskRow, "queuedTurn">,
  user: LaneUser,
): boolean {
  // First by what is there now, which spares the exact look: as above.
  if (user.turns - task.queuedTurn < sizes.ceilingOf(user.size)) return false;
  return sizes.turnsWaited(task, user) >= sizes.ceilingOf(sizes.tasks(user));
}

/** Of each queue of a user that is not out the task that waits longest, if it is past the ceiling: longest wait
 *  first. */
export function lateTasks(
  sizes: RoundSizes,
  user: LaneUser,
  isOut: (queue: TaskQueue) => boolean = nothingIsOut,
): TaskRow[] {
  return user.queues
    .flatMap((queue) => (isOut(queue) || queue.oldest === undefined ? [] : [queue.oldest]))
    .filter((task) => isTaskPastCeiling(sizes, task, user))
    .sort((a, b) => a.queuedOrder - b.queuedOrder);
}

/** Whether a user, or its project, goes next because of how long it waited. */
export function goesByCeiling(state: SwarmState, sizes: RoundSizes, user: LaneUser): boolean {
  const { project } = user;
  if (isPastCeiling(user, ceilingOfUsers(state, sizes, project))) return true;
  return (
    state.policy.projectTurn !== "none" && isPastCeiling(project, ceilingOfProjects(sizes, project.lane))
  );
}
