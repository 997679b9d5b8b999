// How a task's row moves between queues, timers and counters. Every change of a task's state goes through
// `move` or `end`, so that counters equal a recount.

import { assert } from "../assert.ts";
import type { AgentId, BatchIndex, Instant, ProjectId, UserId } from "../ids.ts";
import { limits } from "../limits.ts";
import { newAccount } from "../scheduling/account.ts";
import { costEstimate } from "../scheduling/estimate.ts";
import type { TaskSpec } from "./event.ts";
import { enterLane, leaveLane } from "./lanes.ts";
import {
  type EndedTaskState,
  emptyCounts,
  emptyLedger,
  type LiveTaskState,
  type ProjectRow,
  type SwarmState,
  type TaskRow,
  type TaskState,
  type Timer,
  type UserRow,
  waitingCount,
} from "./state.ts";

/** Of most tasks: one list for all of them. */
export const nobody: readonly AgentId[] = [];

/** Where and when in the journal an event stands. */
export interface EventContext {
  readonly at: Instant;
  readonly idx: BatchIndex;
}

export function submitRow(state: SwarmState, spec: TaskSpec, hash: string, context: EventContext): void {
  assert(!state.taskById.has(spec.id) && !state.endedById.has(spec.id), `task ${spec.id} is submitted once`);
  state.submissions += 1;
  const projectRow = projectRowOf(state, spec.project);
  const row: TaskRow = {
    heapAt: -1,
    spec,
    hash,
    sequence: state.submissions,
    submittedAt: context.at,
    submittedIdx: context.idx,
    userRow: userRowOf(projectRow, spec.user),
    projectRow,
    state: "queued",
    cost: costEstimate(spec),
    queuedAt: context.at,
    queuedOrder: 0,
    queuedTick: 0,
    queuedTurn: 0,
    attempt: 0,
    failures: 0,
    infrastructureFailures: 0,
    failedBy: nobody,
    open: undefined,
    queue: undefined,
    older: undefined,
    newer: undefined,
    releaseTimer: undefined,
    deadlineTimer: undefined,
  };
  state.taskById.set(spec.id, row);
  countLive(state, row, 1);
  if (spec.deadline !== undefined)
    row.deadlineTimer = startTimer(state, spec.deadline, { kind: "deadline", task: row });
  const isDelayed = spec.notBefore !== undefined && spec.notBefore > context.at;
  row.state = isDelayed ? "delayed" : "queued";
  count(state, row, row.state, 1);
  if (isDelayed) row.releaseTimer = startTimer(state, spec.notBefore, { kind: "release", task: row });
  else enterLane(state, row, context.at);
}

/** Puts a row that is in no queue into its lane; its age counts from now. */
export function enqueue(state: SwarmState, row: TaskRow, at: Instant): void {
  move(state, row, "queued");
  enterLane(state, row, at);
}

export function delay(state: SwarmState, row: TaskRow, until: Instant): void {
  move(state, row, "delayed");
  row.releaseTimer = startTimer(state, until, { kind: "release", task: row });
}

export function move(state: SwarmState, row: TaskRow, to: LiveTaskState): void {
  count(state, row, row.state, -1);
  row.state = to;
  count(state, row, to, 1);
}

/** Moves a live task to its one terminal state and frees all that it held but its agent's place. */
export function end(
  state: SwarmState,
  row: TaskRow,
  to: EndedTaskState,
  context: EventContext,
  completedBy?: AgentId,
): void {
  if (row.state === "queued") leaveLane(state, row);
  stopReleaseTimer(state, row);
  if (row.deadlineTimer !== undefined) stopTimer(state, row.deadlineTimer);
  count(state, row, row.state, -1);
  count(state, row, to, 1);
  countLive(state, row, -1);
  state.taskById.delete(row.spec.id);
  state.endedById.set(row.spec.id, {
    id: row.spec.id,
    project: row.spec.project,
    user: row.spec.user,
    kind: row.spec.kind,
    hash: row.hash,
    state: to,
    attempts: row.attempt,
    ...(completedBy === undefined ? {} : { completedBy }),
    submittedIdx: row.submittedIdx,
    endedAt: context.at,
    endedIdx: context.idx,
  });
  forgetEnded(state);
}

export function stopReleaseTimer(state: SwarmState, row: TaskRow): void {
  if (row.releaseTimer === undefined) return;
  stopTimer(state, row.releaseTimer);
  row.releaseTimer = undefined;
}

/** Remembers, sorted, that an agent failed a task. */
export function addFailedBy(row: TaskRow, agent: AgentId): void {
  if (!row.failedBy.includes(agent)) row.failedBy = [...row.failedBy, agent].sort();
}

/** Notes how long a task waited for its first assignment. */
export function countFirstStart(row: TaskRow, at: Instant): void {
  const user = row.userRow;
  const waitMs = Math.max(0, at - Math.max(row.submittedAt, row.spec.notBefore ?? 0));
  user.started += 1;
  user.waitMsSum += waitMs;
  user.waitMsMax = Math.max(user.waitMsMax, waitMs);
}

export function startTimer(state: SwarmState, dueAt: Instant, due: Timer["due"]): Timer {
  state.timersEver += 1;
  const timer: Timer = { heapAt: -1, dueAt, order: state.timersEver, due };
  state.timers.push(timer);
  return timer;
}

/** Stops a timer that may have been stopped before. */
export function stopTimer(state: SwarmState, timer: Timer): void {
  if (timer.heapAt !== -1) state.timers.remove(timer);
}

function count(state: SwarmState, row: TaskRow, taskState: TaskState, change: 1 | -1): void {
  const { projectRow, userRow } = row;
  state.counts[taskState] += change;
  projectRow.counts[taskState] += change;
  userRow.counts[taskState] += change;
  if (taskState !== "queued" && taskState !== "delayed") return;
  if (waitingCount(userRow.counts) === (change === 1 ? 1 : 0)) projectRow.usersWaiting += change;
}

function countLive(state: SwarmState, { projectRow, userRow }: TaskRow, change: 1 | -1): void {
  projectRow.live += change;
  userRow.live += change;
  if (!isKept(projectRow)) noteIdle(state.idleProjects, projectRow.project, projectRow.live);
  noteIdle(projectRow.idleUsers, userRow.user, userRow.live);
}

function noteIdle<Key>(idle: Set<Key>, key: Key, live: number): void {
  if (live === 0) idle.add(key);
  else if (live === 1) idle.delete(key);
}

/** Whether a task of this project and user can be counted: their rows are there, or there is room for them. */
export function hasRoomFor(state: SwarmState, project: ProjectId, user: UserId): boolean {
  const row = state.projectById.get(project);
  if (row === undefined) return hasRoomForProject(state, project);
  return (
    row.userByName.has(user) || row.userByName.size < limits.usersPerProjectMax || row.idleUsers.size > 0
  );
}

export function hasRoomForProject(state: SwarmState, project: ProjectId): boolean {
  const { projectById, idleProjects } = state;
  return projectById.has(project) || projectById.size < limits.projectsMax || idleProjects.size > 0;
}

/** Whether a project's row must outlive its tasks: an operator's word is not forgotten, nor what open attempts hold. */
export function isKept(row: ProjectRow): boolean {
  return row.settings !== undefined || row.isPaused || row.openAttempts > 0;
}

/** Lists a project as idle or not, after what keeps its row has changed. */
export function noteKept(state: SwarmState, row: ProjectRow): void {
  if (row.live > 0 || isKept(row)) state.idleProjects.delete(row.project);
  else state.idleProjects.add(row.project);
}

/** The row of a project, made when it is not there. */
export function projectRowOf(state: SwarmState, project: ProjectId): ProjectRow {
  const known = state.projectById.get(project);
  if (known !== undefined) return known;
  evictIdle(state.projectById, state.idleProjects, limits.projectsMax);
  const row: ProjectRow = {
    project,
    settings: undefined,
    isPaused: false,
    counts: emptyCounts(),
    ledger: emptyLedger(state.policy.guaranteeMs),
    openAttempts: 0,
    account: newAccount(),
    virtualTime: 0,
    live: 0,
    usersWaiting: 0,
    userByName: new Map(),
    idleUsers: new Set(),
  };
  state.projectById.set(project, row);
  return row;
}

function userRowOf({ userByName, idleUsers }: ProjectRow, user: UserId): UserRow {
  const known = userByName.get(user);
  if (known !== undefined) return known;
  evictIdle(userByName, idleUsers, limits.usersPerProjectMax);
  const row: UserRow = {
    user,
    counts: emptyCounts(),
    account: newAccount(),
    live: 0,
    waitMsSum: 0,
    waitMsMax: 0,
    started: 0,
  };
  userByName.set(user, row);
  return row;
}

/** Takes the longest idle row out of a full table. Submits that find no room are refused before they get here. */
function evictIdle<Key>(rowByKey: Map<Key, unknown>, idle: Set<Key>, sizeMax: number): void {
  if (rowByKey.size < sizeMax) return;
  const longestIdle = idle.values().next();
  assert(longestIdle.done === false, "a table of busy rows takes no other");
  idle.delete(longestIdle.value);
  rowByKey.delete(longestIdle.value);
}

function forgetEnded(state: SwarmState): void {
  let forgotten = 0;
  for (const [id, ended] of state.endedById) {
    const isKept = state.endedById.size <= state.policy.rememberedTasks && ended.endedAt >= state.horizonAt;
    if (isKept || forgotten === limits.forgottenPerEndMax) return;
    state.endedById.delete(id);
    forgotten += 1;
  }
}
