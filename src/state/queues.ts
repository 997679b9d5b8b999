// Where queued tasks wait: queue (kind, role and needs) → project → user → tasks, partitioned by agents that failed
// them. Each level keeps the order of turns (docs/scheduling.md). Every change of a queue goes through this file. Not
// here: whose turn is next (scheduling/turn-order.ts), the rest of a task's row (task-rows.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, Kind } from "../ids.ts";
import { type Account, charge } from "./account.ts";
import { ClockQueue } from "./clock-queue.ts";
import type { TaskSpec } from "./event.ts";
import { IndexedHeap } from "./indexed-heap.ts";
import { kindRowOf, noteKind } from "./kind-rows.ts";
import { type Needs, needsText } from "./needs.ts";
import type { TurnBases } from "./receipt.ts";
import { firstTask, isServedEarlier, oldestTask } from "./service-order.ts";
import {
  type KindRow,
  kindSettingsOf,
  type ProjectRow,
  projectSettingsOf,
  type QueueProject,
  type QueueUser,
  type SwarmState,
  type TaskPartition,
  type TaskQueue,
  type TaskRow,
} from "./state.ts";

/** Puts a row that is in no queue into its queue; the row was just counted as queued. */
export function enterQueue(state: SwarmState, row: TaskRow, at: Instant): void {
  state.orders += 1;
  const queue = queueFor(state, row);
  row.queuedAt = at;
  row.queuedOrder = state.orders;
  row.queuedTick = queue.kindRow.tick;
  if (row.projectRow.counts.queued === 1) row.projectRow.account.arrivedOrder = state.orders;
  if (row.userRow.counts.queued === 1) row.userRow.account.arrivedOrder = state.orders;
  const project = projectIn(queue, row.projectRow, state.orders);
  row.queuedTurn = project.memberByUser.get(row.userRow.user)?.turns ?? 0;
  append(partitionIn(userIn(project, row), row.failedBy), row);
}

/** Takes a queued row out of its queue. */
export function leaveQueue(state: SwarmState, row: TaskRow): void {
  const { partition } = row;
  assert(partition !== undefined, `queued task ${row.spec.id} stands in a queue`);
  const { user } = partition;
  const { project } = user;
  const { queue } = project;
  takeOut(partition, row);
  if (partition.oldest === undefined) user.partitions.splice(user.partitions.indexOf(partition), 1);
  count(user, row, -1);
  if (user.size > 0) {
    noteFirst(user);
    return;
  }
  project.users.leave(user);
  project.memberByUser.delete(user.row.user);
  if (project.size > 0) return;
  queue.projects.leave(project);
  queue.memberByProject.delete(project.row.project);
  if (queue.size > 0) return;
  state.queueByKey.delete(queue.key);
  queue.kindRow.queues -= 1;
  noteKind(state, queue.kindRow);
}

/**
 * Charges a queued task's grant to its project and user (docs/scheduling.md, "The clocks"). The task is still queued.
 */
export function takeTurn(state: SwarmState, row: TaskRow, turn: TurnBases, at: Instant): void {
  const { partition, projectRow, userRow, cost } = row;
  assert(partition !== undefined, `queued task ${row.spec.id} stands in a queue`);
  const { user } = partition;
  const { project } = user;
  const { kindRow } = project.queue;
  state.orders += 1;
  const projectStart = charge(
    projectRow.account,
    state.virtualTime,
    cost,
    projectSettingsOf(projectRow).creditWeight,
  );
  if (turn.project === "rule") state.virtualTime = Math.max(state.virtualTime, projectStart);
  const userStart = charge(userRow.account, projectRow.virtualTime, cost, kindSettingsOf(kindRow).importance);
  if (turn.user === "rule") projectRow.virtualTime = Math.max(projectRow.virtualTime, userStart);
  serve(projectRow.account, state.orders, at);
  serve(userRow.account, state.orders, at);
  project.turns += 1;
  user.turns += 1;
  project.queue.projects.restartWait(project, state.orders, kindRow.tick, 0);
  project.users.restartWait(user, state.orders, kindRow.tick, project.turns);
}

/** The queue of a queued task. */
export function queueOf(row: TaskRow): TaskQueue | undefined {
  return row.partition?.user.project.queue;
}

/**
 * The queue's name: the kind, then the role and the needs if there are any: `review senior needs gpu=a100`. No two
 * queues share a name: a kind or role has no space, and the text of needs always has a `=`.
 */
export function queueKey(kind: Kind, role: string | undefined, needs?: Needs): string {
  const ofRole = role === undefined ? kind : `${kind} ${role}`;
  return needs === undefined ? ofRole : `${ofRole} needs ${needsText(needs)}`;
}

/** Counts a task that became live or ended. Without needs, does nothing. */
export function countNeeds(
  { liveByNeeds }: SwarmState,
  { kind, role, needs }: TaskSpec,
  change: 1 | -1,
): void {
  if (needs === undefined) return;
  const key = queueKey(kind, role, needs);
  const live = (liveByNeeds.get(key) ?? 0) + change;
  if (live === 0) liveByNeeds.delete(key);
  else liveByNeeds.set(key, live);
}

function serve(account: Account, order: number, at: Instant): void {
  account.servedOrder = order;
  account.servedAt = at;
}

function queueFor(state: SwarmState, { spec: { kind, role, needs } }: TaskRow): TaskQueue {
  const known = state.queueByKey.get(queueKey(kind, role, needs));
  if (known !== undefined) return known;
  const kindRow = kindRowOf(state, kind);
  const queue = addQueue(state, kindRow, { role, needs });
  noteKind(state, kindRow);
  return queue;
}

function projectIn(queue: TaskQueue, row: ProjectRow, order: number): QueueProject {
  const known = queue.memberByProject.get(row.project);
  if (known !== undefined) return known;
  return addProject(queue, row, {
    turns: 0,
    sinceOrder: order,
    sinceTick: queue.kindRow.tick,
    sinceTurn: 0,
  });
}

/** @param task the user's first task here, for a user without tasks */
function userIn(project: QueueProject, task: TaskRow): QueueUser {
  const known = project.memberByUser.get(task.userRow.user);
  if (known !== undefined) return known;
  return addUser(project, task, {
    turns: 0,
    sinceOrder: task.queuedOrder,
    sinceTick: task.queuedTick,
    sinceTurn: project.turns,
  });
}

function partitionIn(user: QueueUser, avoid: readonly AgentId[]): TaskPartition {
  return user.partitions.find((partition) => isSameList(partition.avoid, avoid)) ?? addPartition(user, avoid);
}

/** A member's turns and the start of its wait. */
export type Waiting = Pick<QueueProject | QueueUser, "turns" | "sinceOrder" | "sinceTick" | "sinceTurn">;

/** Adds a queue without tasks, behind all others. */
export function addQueue(
  state: SwarmState,
  kindRow: KindRow,
  { role, needs }: Pick<TaskQueue, "role" | "needs">,
): TaskQueue {
  const { kind } = kindRow;
  const queue: TaskQueue = {
    key: queueKey(kind, role, needs),
    kind,
    role,
    needs,
    kindRow,
    size: 0,
    memberByProject: new Map(),
    projects: new ClockQueue({ isServiceOrdered: true }),
  };
  kindRow.queues += 1;
  state.queueByKey.set(queue.key, queue);
  return queue;
}

export function addProject(queue: TaskQueue, row: ProjectRow, waiting: Waiting): QueueProject {
  const member: QueueProject = {
    row,
    queue,
    account: row.account,
    users: new ClockQueue({ isServiceOrdered: false }),
    turns: waiting.turns,
    number: -1,
    sinceOrder: waiting.sinceOrder,
    sinceTick: waiting.sinceTick,
    sinceTurn: waiting.sinceTurn,
    size: 0,
    cost: 0,
    memberByUser: new Map(),
  };
  queue.memberByProject.set(row.project, member);
  queue.projects.enter(member);
  return member;
}

/** @param task a task of the user in the project's queue */
export function addUser(project: QueueProject, task: TaskRow, waiting: Waiting): QueueUser {
  const row = task.userRow;
  const member: QueueUser = {
    row,
    project,
    account: row.account,
    turns: waiting.turns,
    number: -1,
    sinceOrder: waiting.sinceOrder,
    sinceTick: waiting.sinceTick,
    sinceTurn: waiting.sinceTurn,
    size: 0,
    first: task,
    firstPriority: task.spec.priority,
    firstSequence: task.sequence,
    oldest: task,
    oldestOrder: task.queuedOrder,
    oldestTurn: task.queuedTurn,
    cost: 0,
    partitions: [],
  };
  project.memberByUser.set(row.user, member);
  project.users.enter(member);
  return member;
}

export function addPartition(user: QueueUser, avoid: readonly AgentId[]): TaskPartition {
  const partition: TaskPartition = {
    user,
    avoid,
    tasks: new IndexedHeap(isServedEarlier),
    oldest: undefined,
    newest: undefined,
  };
  user.partitions.push(partition);
  return partition;
}

/** Puts a task behind all others of a partition, and counts it. */
export function append(partition: TaskPartition, row: TaskRow): void {
  partition.tasks.push(row);
  row.partition = partition;
  row.older = partition.newest;
  if (partition.newest === undefined) partition.oldest = row;
  else partition.newest.newer = row;
  partition.newest = row;
  noteFirst(partition.user);
  count(partition.user, row, 1);
}

/** Updates the user's first and oldest task after a change; the user has tasks left. */
function noteFirst(user: QueueUser): void {
  const first = firstTask(user) as TaskRow;
  if (first !== user.first) {
    user.first = first;
    user.firstPriority = first.spec.priority;
    user.firstSequence = first.sequence;
  }
  const oldest = oldestTask(user) as TaskRow;
  if (oldest === user.oldest) return;
  user.oldest = oldest;
  user.oldestOrder = oldest.queuedOrder;
  user.oldestTurn = oldest.queuedTurn;
}

function takeOut(partition: TaskPartition, row: TaskRow): void {
  partition.tasks.remove(row);
  const { older, newer } = row;
  if (older === undefined) partition.oldest = newer;
  else older.newer = newer;
  if (newer === undefined) partition.newest = older;
  else newer.older = older;
  row.partition = undefined;
  row.older = undefined;
  row.newer = undefined;
}

function count(user: QueueUser, row: TaskRow, change: 1 | -1): void {
  for (const part of [user, user.project]) {
    part.size += change;
    part.cost += change * row.cost;
  }
  user.project.queue.size += change;
}

export function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}
