// Whether a submission is accepted: bounds on waiting tasks per swarm, project and user (docs/operations.md, "When a
// queue is full"), and budgets. Reads counters only: the cost does not grow with the number of waiting tasks.

import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { neverFits, rejectingBudget } from "../scheduling/gates.ts";
import { estimateSource, tokensEstimate } from "../state/estimate.ts";
import type { TaskSpec } from "../state/event.ts";
import { queueKey } from "../state/queues.ts";
import type { ProjectSettings, Range } from "../state/settings.ts";
import { defaultProjectSettings, type ProjectRow, type SwarmState, waitingCount } from "../state/state.ts";
import { hasRoomFor, hasRoomForProject } from "../state/task-rows.ts";
import type { BudgetRefusal, QueueRefusal, Reply } from "./command.ts";

/** Why a task is refused, or undefined. The task is new or retried, and not live. */
export function refusalOf(state: SwarmState, task: TaskSpec, at: Instant): Reply | undefined {
  const row = state.projectById.get(task.project);
  if (!isDeclared(state, row)) return { kind: "unknown-project", project: task.project };
  const beyond = row?.settings === undefined ? undefined : beyondProject(row.settings, task);
  if (beyond !== undefined) return beyond;
  const tokens = tokensEstimate(state, task);
  const tooSmall = neverFits(state, row, tokens);
  if (tooSmall !== undefined)
    return { kind: "over-budget", tokens, source: estimateSource(state, task), ...tooSmall };

  const { project } = task;
  const source = estimateSource(state, task);
  return rejectionBy(state, { project, row, tokens, source }, at) ?? fullQueue(state, task, row);
}

/** The refusal of a user, priority or weight that the project does not permit its submitters. */
function beyondProject(
  settings: ProjectSettings,
  { project, user, priority, weight }: TaskSpec,
): Reply | undefined {
  const { user: only, priorityRange, weightRange } = settings;
  const refused = (field: "user" | "priority" | "weight", permitted: string): Reply => ({
    kind: "beyond-project",
    project,
    field,
    permitted,
  });
  if (only !== undefined && user !== only) return refused("user", only);
  if (priorityRange !== undefined && !isIn(priorityRange, priority))
    return refused("priority", `${priorityRange.min} to ${priorityRange.max}`);
  if (weightRange !== undefined && !isIn(weightRange, weight))
    return refused("weight", `${weightRange.min} to ${weightRange.max}`);
  return undefined;
}

function isIn({ min, max }: Range, value: number): boolean {
  return value >= min && value <= max;
}

/** The refusal by a budget in mode `reject` that has too little left for so many tokens. */
export function rejectionBy(
  state: SwarmState,
  {
    project,
    row,
    tokens,
    source,
  }: Pick<BudgetRefusal, "project" | "tokens" | "source"> & { readonly row: ProjectRow | undefined },
  at: Instant,
): BudgetRefusal | undefined {
  const found = rejectingBudget(state, row, tokens, at);
  if (found === undefined) return undefined;
  const { reason, budget, spent, reserved, opensAt } = found;
  return {
    kind: "budget-exceeded",
    reason: reason === "project-budget" ? "project-budget-used-up" : "swarm-budget-used-up",
    project,
    budget,
    spent,
    reserved,
    tokens,
    source,
    retryAfterMs: opensAt === undefined ? limits.budgetRetryMs : opensAt - at,
    isHeld: opensAt === undefined,
  };
}

export function isDeclared(state: SwarmState, row: ProjectRow | undefined): boolean {
  return state.policy.projects === "open" || row?.settings !== undefined;
}

/**
 * The first bound that one more task would break. Queued and delayed tasks count as waiting: also a task before its
 * not-before, and a failed task before its retry.
 */
function fullQueue(state: SwarmState, task: TaskSpec, row: ProjectRow | undefined): QueueRefusal | undefined {
  const { project, user } = task;
  const refused = (reason: QueueRefusal["reason"], has: number, max: number): QueueRefusal => ({
    kind: "refused",
    reason,
    project,
    user,
    has,
    max,
    retryAfterMs: limits.retryAfterMs,
  });
  const waiting = waitingCount(state.counts);
  if (waiting >= limits.queuedTasksMax) return refused("swarm-queue-full", waiting, limits.queuedTasksMax);
  const { kind, role, needs } = task;
  const sets = state.liveByNeeds.size;
  const isCrowded = needs !== undefined && sets >= limits.needsQueuesMax;
  if (isCrowded && !state.liveByNeeds.has(queueKey(kind, role, needs)))
    return refused("too-many-needs", sets, limits.needsQueuesMax);
  if (row === undefined) {
    const { projectsMax } = limits;
    return hasRoomForProject(state, project)
      ? undefined
      : refused("too-many-projects", state.projectById.size, projectsMax);
  }
  const ofProject = waitingCount(row.counts);
  const max = queueMaxOf(row);
  if (ofProject >= max) return refused("project-queue-full", ofProject, max);
  const userRow = row.userByName.get(user);
  const own = userRow === undefined ? 0 : waitingCount(userRow.counts);
  const share = shareOf(row, own);
  if (own >= share) return refused("user-queue-full", own, share);
  if (!hasRoomFor(state, project, user))
    return refused("too-many-users", row.userByName.size, limits.usersPerProjectMax);
  return undefined;
}

function queueMaxOf({ settings = defaultProjectSettings }: ProjectRow): number {
  return settings.queueMax;
}

/**
 * Maximum waiting tasks of a user, in a project with room for one more task. Beyond half of the project's bound, a user
 * with more waiting tasks than the mean of the other waiting users may add none. A user at the mean may add one, so
 * equal users fill the queue up to its bound. A user without waiting rivals may fill the queue.
 * @param own the user's waiting tasks
 */
function shareOf(row: ProjectRow, own: number): number {
  const waiting = waitingCount(row.counts);
  const max = queueMaxOf(row);
  const others = row.usersWaiting - 1;
  if (own === 0 || others === 0 || 2 * (waiting + 1) <= max) return max;
  return Math.floor((waiting - own) / others) + 1;
}
