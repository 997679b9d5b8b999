// How a task's row moves between queues, timers and counters. Every change of a task's state goes through `move` or
// `end`, so that counters equal a recount.

import { assert } from "../assert.ts";
import type { AgentId, BatchIndex, Instant, ProjectId, TaskId, TaskRef, UserId } from "../ids.ts";
import { limits } from "../limits.ts";
import { newAccount } from "./account.ts";
import type { EndedTaskState } from "./ended-task.ts";
import { costEstimate } from "./estimate.ts";
import type { Attributes, EventOf, TaskSpec } from "./event.ts";
import { countNeeds, enterQueue, leaveQueue } from "./queues.ts";
import {
  emptyCounts,
  emptyLedger,
  type LiveTaskState,
  type ProjectRow,
  type SwarmState,
  type TaskCounts,
  type TaskRow,
  type TaskState,
  type Timer,
  type UserRow,
  waitingCount,
} from "./state.ts";

/** The `failedBy` of most tasks: a shared empty list. */
export const nobody: readonly AgentId[] = [];

/** The name of a task, from any record of the task. */
export function refOf({ project, id }: { readonly project: ProjectId; readonly id: TaskId }): TaskRef {
  return { project, task: id };
}

/** Where and when in the journal an event stands. */
export interface EventContext {
  readonly at: Instant;
  readonly idx: BatchIndex;
}

export function submitRow(state: SwarmState, spec: TaskSpec, hash: string, context: EventContext): void {
  const ref = refOf(spec);
  assert(!state.taskById.has(ref) && !state.endedById.has(ref), `task ${spec.id} is submitted once`);
  state.submissions += 1;
  const { at: roundAt, idx } = context;
  // Not by spreading: an object literal that begins with a spread costs a hundred times as much.
  const round: RoundOfRow = {
    sequence: state.submissions,
    submittedIdx: idx,
    round: 1,
    roundAt,
    roundIdx: idx,
    attemptsBefore: 0,
    lastAgent: undefined,
  };
  begin(state, newRow(state, spec, hash, round), roundAt);
}

/** Opens the next round of an ended task: attempt numbers continue, failures count from 0. */
export function retryRow(state: SwarmState, event: EventOf<"TaskRetried">, context: EventContext): void {
  const { task: spec, hash, round } = event;
  const ref = refOf(spec);
  const ended = state.endedById.get(ref);
  assert(ended !== undefined, `task ${spec.id} is retried after it ended`);
  assert(isRetryable(ended.state), `task ${spec.id} is not retried once it is ${ended.state}`);
  assert(spec.notBefore === undefined, `task ${spec.id} is retried at once`);
  assert(round === ended.round + 1, `round ${round} of ${spec.id} follows round ${ended.round}`);
  assert(hash === ended.hash, `task ${spec.id} is the one that ended`);
  state.endedById.delete(ref);
  const { sequence, submittedIdx, attempts, agent } = ended;
  const { at: roundAt, idx: roundIdx } = context;
  const row = newRow(state, spec, hash, {
    sequence,
    submittedIdx,
    round,
    roundAt,
    roundIdx,
    attemptsBefore: attempts,
    lastAgent: agent,
  });
  uncountEnded(state, row, ended.state);
  begin(state, row, roundAt);
}

/** True if a task with the outcome may have a next round. */
export function isRetryable(ended: EndedTaskState): boolean {
  return ended !== "completed";
}

type RoundOfRow = Pick<
  TaskRow,
  "sequence" | "submittedIdx" | "round" | "roundAt" | "roundIdx" | "attemptsBefore" | "lastAgent"
>;

function newRow(state: SwarmState, spec: TaskSpec, hash: string, round: RoundOfRow): TaskRow {
  const projectRow = projectRowOf(state, spec.project);
  return {
    heapAt: -1,
    spec,
    hash,
    sequence: round.sequence,
    submittedIdx: round.submittedIdx,
    round: round.round,
    roundAt: round.roundAt,
    roundIdx: round.roundIdx,
    attemptsBefore: round.attemptsBefore,
    userRow: userRowOf(projectRow, spec.user),
    projectRow,
    state: "queued",
    cost: costEstimate(spec),
    queuedAt: round.roundAt,
    queuedOrder: 0,
    queuedTick: 0,
    queuedTurn: 0,
    attempt: round.attemptsBefore,
    failures: 0,
    infrastructureFailures: 0,
    refusals: 0,
    lastAgent: round.lastAgent,
    failedBy: nobody,
    open: undefined,
    partition: undefined,
    older: undefined,
    newer: undefined,
    releaseTimer: undefined,
    deadlineTimer: undefined,
  };
}

/** Makes a new row live: counted, with timers, and queued unless the task waits for its not-before. */
function begin(state: SwarmState, row: TaskRow, at: Instant): void {
  const { spec } = row;
  state.taskById.set(refOf(spec), row);
  countLive(state, row, 1);
  if (spec.deadline !== undefined)
    row.deadlineTimer = startTimer(state, spec.deadline, { kind: "deadline", task: row });
  const isDelayed = spec.notBefore !== undefined && spec.notBefore > at;
  row.state = isDelayed ? "delayed" : "queued";
  count(state, row, row.state, 1);
  if (isDelayed) row.releaseTimer = startTimer(state, spec.notBefore, { kind: "release", task: row });
  else enterQueue(state, row, at);
}

/** Stops counting a live task as ended. Rows of a project or user made after the task's end never counted the task. */
function uncountEnded(state: SwarmState, { projectRow, userRow }: TaskRow, ended: EndedTaskState): void {
  state.counts[ended] -= 1;
  for (const { counts } of [projectRow, userRow]) counts[ended] = Math.max(0, counts[ended] - 1);
}

/** Puts an unqueued row into its queue; the age counts from now. */
export function enqueue(state: SwarmState, row: TaskRow, at: Instant): void {
  move(state, row, "queued");
  enterQueue(state, row, at);
}

export function delay(state: SwarmState, row: TaskRow, until: Instant): void {
  move(state, row, "delayed");
  row.releaseTimer = startTimer(state, until, { kind: "release", task: row });
}

/** Changes the earliest start of a waiting task. A queued task with a later start leaves its queue. */
export function rescheduleRow(state: SwarmState, row: TaskRow, notBefore: Instant, at: Instant): void {
  assert(row.open === undefined, `task ${row.spec.id} is rescheduled while it waits, not ${row.state}`);
  row.spec = { ...row.spec, notBefore };
  const isLater = notBefore > at;
  if (row.state === "queued") {
    if (!isLater) return;
    leaveQueue(state, row);
    return delay(state, row, notBefore);
  }
  stopReleaseTimer(state, row);
  if (isLater) row.releaseTimer = startTimer(state, notBefore, { kind: "release", task: row });
  else enqueue(state, row, at);
}

export function move(state: SwarmState, row: TaskRow, to: LiveTaskState): void {
  count(state, row, row.state, -1);
  row.state = to;
  count(state, row, to, 1);
}

/** Moves a live task to its terminal state. Frees everything held by the task, except the agent's capacity. */
export function end(state: SwarmState, row: TaskRow, to: EndedTaskState, context: EventContext): void {
  if (row.state === "queued") leaveQueue(state, row);
  stopReleaseTimer(state, row);
  if (row.deadlineTimer !== undefined) stopTimer(state, row.deadlineTimer);
  count(state, row, row.state, -1);
  count(state, row, to, 1);
  countLive(state, row, -1);
  state.taskById.delete(refOf(row.spec));
  const { sequence, round, lastAgent, submittedIdx, roundIdx } = row;
  state.endedById.add({
    id: row.spec.id,
    project: row.projectRow.project,
    user: row.userRow.user,
    kind: row.spec.kind,
    hash: row.hash,
    state: to,
    sequence,
    round,
    attempts: row.attempt,
    agent: lastAgent,
    submittedIdx,
    roundIdx,
    endedAt: context.at,
    endedIdx: context.idx,
    attributes: attributesText(row.spec.attributes),
  });
  forgetEnded(state);
}

/** As an ended task keeps them. */
export function attributesText(attributes: Attributes | undefined): string | undefined {
  return attributes === undefined ? undefined : JSON.stringify(attributes);
}

export function stopReleaseTimer(state: SwarmState, row: TaskRow): void {
  if (row.releaseTimer === undefined) return;
  stopTimer(state, row.releaseTimer);
  row.releaseTimer = undefined;
}

/** Adds an agent to the sorted list of agents with a failed attempt. */
export function addFailedBy(row: TaskRow, agent: AgentId): void {
  if (!row.failedBy.includes(agent)) row.failedBy = [...row.failedBy, agent].sort();
}

/** Records a task's wait for the first assignment of the round. */
export function countFirstStart(row: TaskRow, at: Instant): void {
  const user = row.userRow;
  const waitMs = Math.max(0, at - Math.max(row.roundAt, row.spec.notBefore ?? 0));
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

/** Stops a timer. Idempotent. */
export function stopTimer(state: SwarmState, timer: Timer): void {
  if (timer.heapAt !== -1) state.timers.remove(timer);
}

function count(state: SwarmState, row: TaskRow, taskState: TaskState, change: 1 | -1): void {
  const { projectRow, userRow } = row;
  addTo(state.counts, taskState, change);
  addTo(projectRow.counts, taskState, change);
  addTo(userRow.counts, taskState, change);
  if (taskState !== "queued" && taskState !== "delayed") return;
  if (waitingCount(userRow.counts) === (change === 1 ? 1 : 0)) projectRow.usersWaiting += change;
}

/** By names: the engine finds a computed field several times as slowly. */
function addTo(counts: TaskCounts, taskState: TaskState, change: 1 | -1): void {
  switch (taskState) {
    case "queued":
      counts.queued += change;
      return;
    case "assigned":
      counts.assigned += change;
      return;
    case "running":
      counts.running += change;
      return;
    case "completed":
      counts.completed += change;
      return;
    default:
      counts[taskState] += change;
  }
}

function countLive(state: SwarmState, { projectRow, userRow, spec }: TaskRow, change: 1 | -1): void {
  countNeeds(state, spec, change);
  projectRow.live += change;
  userRow.live += change;
  if (!isKept(projectRow)) noteIdle(state.idleProjects, projectRow.project, projectRow.live);
  noteIdle(projectRow.idleUsers, userRow.user, userRow.live);
}

function noteIdle<Key>(idle: Set<Key>, key: Key, live: number): void {
  if (live === 0) idle.add(key);
  else if (live === 1) idle.delete(key);
}

/** True if a task of the project and user can be counted: the rows exist, or the tables have room for new rows. */
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

/** True if a project's row must outlive the tasks: for settings, a pause, open attempts, or slot leases. */
export function isKept(row: ProjectRow): boolean {
  return row.settings !== undefined || row.isPaused || row.openAttempts > 0 || row.slotLeases > 0;
}

/** Lists a project as idle or not, after a change of the reasons to keep the row. */
export function noteKept(state: SwarmState, row: ProjectRow): void {
  if (row.live > 0 || isKept(row)) state.idleProjects.delete(row.project);
  else state.idleProjects.add(row.project);
}

/** The row of a project, made when absent. */
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
    slotLeases: 0,
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

/** Removes the longest idle row from a full table. Submits without room are refused earlier. */
function evictIdle<Key>(rowByKey: Map<Key, unknown>, idle: Set<Key>, sizeMax: number): void {
  if (rowByKey.size < sizeMax) return;
  const longestIdle = idle.values().next();
  assert(longestIdle.done === false, "a table of busy rows takes no other");
  idle.delete(longestIdle.value);
  rowByKey.delete(longestIdle.value);
}

function forgetEnded({ endedById, policy, horizonAt }: SwarmState): void {
  for (let forgotten = 0; forgotten < limits.forgottenPerEndMax; forgotten += 1) {
    const { oldestEndedAt } = endedById;
    if (oldestEndedAt === undefined) return;
    if (endedById.size <= policy.rememberedTasks && oldestEndedAt >= horizonAt) return;
    endedById.forgetOldest();
  }
}
