// Where queued tasks wait: lane (kind and role) → project → user → tasks, split by the agents that failed them.
// Each level keeps who goes next (docs/scheduling.md). Every change of a queue goes through here.
// Not here: which of them is next (scheduling/turn-order.ts), what a task's row is otherwise (task-rows.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, Kind } from "../ids.ts";
import { type Account, charge } from "./account.ts";
import { ClockQueue } from "./clock-queue.ts";
import { IndexedHeap } from "./indexed-heap.ts";
import { kindRowOf, noteKind } from "./kind-rows.ts";
import type { TurnBases } from "./receipt.ts";
import { firstTask, isServedEarlier, oldestTask } from "./service-order.ts";
import {
  type KindRow,
  kindSettingsOf,
  type Lane,
  type LaneProject,
  type LaneUser,
  type ProjectRow,
  projectSettingsOf,
  type SwarmState,
  type TaskQueue,
  type TaskRow,
} from "./state.ts";

/** Puts a row that is in no queue into its own; it was just counted as queued. */
export function enterLane(state: SwarmState, row: TaskRow, at: Instant): void {
  state.orders += 1;
  const lane = laneFor(state, row);
  row.queuedAt = at;
  row.queuedOrder = state.orders;
  row.queuedTick = lane.kindRow.tick;
  if (row.projectRow.counts.queued === 1) row.projectRow.account.arrivedOrder = state.orders;
  if (row.userRow.counts.queued === 1) row.userRow.account.arrivedOrder = state.orders;
  const project = projectIn(lane, row.projectRow, state.orders);
  row.queuedTurn = project.memberByUser.get(row.userRow.user)?.turns ?? 0;
  append(queueIn(userIn(project, row), row.failedBy), row);
}

/** Takes a queued row out of its lane. */
export function leaveLane(state: SwarmState, row: TaskRow): void {
  const { queue } = row;
  assert(queue !== undefined, `queued task ${row.spec.id} stands in a lane`);
  const { user } = queue;
  const { project } = user;
  const { lane } = project;
  takeOut(queue, row);
  if (queue.oldest === undefined) user.queues.splice(user.queues.indexOf(queue), 1);
  count(user, row, -1);
  if (user.size > 0) {
    noteFirst(user);
    return;
  }
  project.users.leave(user);
  project.memberByUser.delete(user.row.user);
  if (project.size > 0) return;
  lane.projects.leave(project);
  lane.memberByProject.delete(project.row.project);
  if (lane.size > 0) return;
  state.laneByKey.delete(lane.key);
  lane.kindRow.lanes -= 1;
  noteKind(state, lane.kindRow);
}

/** Charges a queued task's grant to its project and user (docs/scheduling.md, "The clocks"). It is still queued. */
export function takeTurn(state: SwarmState, row: TaskRow, turn: TurnBases, at: Instant): void {
  const { queue, projectRow, userRow, cost } = row;
  assert(queue !== undefined, `queued task ${row.spec.id} stands in a lane`);
  const { user } = queue;
  const { project } = user;
  const { kindRow } = project.lane;
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
  project.lane.projects.restartWait(project, state.orders, kindRow.tick, 0);
  project.users.restartWait(user, state.orders, kindRow.tick, project.turns);
}

/** The lane a queued task stands in. */
export function laneOf(row: TaskRow): Lane | undefined {
  return row.queue?.user.project.lane;
}

/** The lane's name: the kind, and the role where there is one. */
export function laneKey(kind: Kind, role: string | undefined): string {
  return role === undefined ? kind : `${kind} ${role}`;
}

function serve(account: Account, order: number, at: Instant): void {
  account.servedOrder = order;
  account.servedAt = at;
}

function laneFor(state: SwarmState, { spec: { kind, role } }: TaskRow): Lane {
  const known = state.laneByKey.get(laneKey(kind, role));
  if (known !== undefined) return known;
  const kindRow = kindRowOf(state, kind);
  const lane = addLane(state, kindRow, role);
  noteKind(state, kindRow);
  return lane;
}

function projectIn(lane: Lane, row: ProjectRow, order: number): LaneProject {
  const known = lane.memberByProject.get(row.project);
  if (known !== undefined) return known;
  return addProject(lane, row, {
    turns: 0,
    sinceOrder: order,
    sinceTick: lane.kindRow.tick,
    sinceTurn: 0,
  });
}

/** @param task about to be its first here, when it has none */
function userIn(project: LaneProject, task: TaskRow): LaneUser {
  const known = project.memberByUser.get(task.userRow.user);
  if (known !== undefined) return known;
  return addUser(project, task, {
    turns: 0,
    sinceOrder: task.queuedOrder,
    sinceTick: task.queuedTick,
    sinceTurn: project.turns,
  });
}

function queueIn(user: LaneUser, avoid: readonly AgentId[]): TaskQueue {
  return user.queues.find((queue) => isSameList(queue.avoid, avoid)) ?? addQueue(user, avoid);
}

/** What a member of a level is but for whose it is: how often it was granted something, and since when it waits. */
export type Waiting = Pick<LaneProject | LaneUser, "turns" | "sinceOrder" | "sinceTick" | "sinceTurn">;

/** Adds a lane that has no tasks yet, behind all others. */
export function addLane(state: SwarmState, kindRow: KindRow, role: string | undefined): Lane {
  const { kind } = kindRow;
  const lane: Lane = {
    key: laneKey(kind, role),
    kind,
    role,
    kindRow,
    size: 0,
    memberByProject: new Map(),
    projects: new ClockQueue({ isServiceOrdered: true }),
  };
  kindRow.lanes += 1;
  state.laneByKey.set(lane.key, lane);
  return lane;
}

export function addProject(lane: Lane, row: ProjectRow, waiting: Waiting): LaneProject {
  const member: LaneProject = {
    row,
    lane,
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
  lane.memberByProject.set(row.project, member);
  lane.projects.enter(member);
  return member;
}

/** @param task one of its tasks here */
export function addUser(project: LaneProject, task: TaskRow, waiting: Waiting): LaneUser {
  const row = task.userRow;
  const member: LaneUser = {
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
    queues: [],
  };
  project.memberByUser.set(row.user, member);
  project.users.enter(member);
  return member;
}

export function addQueue(user: LaneUser, avoid: readonly AgentId[]): TaskQueue {
  const queue: TaskQueue = {
    user,
    avoid,
    tasks: new IndexedHeap(isServedEarlier),
    oldest: undefined,
    newest: undefined,
  };
  user.queues.push(queue);
  return queue;
}

/** Puts a task behind all others of a queue, and counts it. */
export function append(queue: TaskQueue, row: TaskRow): void {
  queue.tasks.push(row);
  row.queue = queue;
  row.older = queue.newest;
  if (queue.newest === undefined) queue.oldest = row;
  else queue.newest.newer = row;
  queue.newest = row;
  noteFirst(queue.user);
  count(queue.user, row, 1);
}

/** Its tasks changed; some are left. */
function noteFirst(user: LaneUser): void {
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

function takeOut(queue: TaskQueue, row: TaskRow): void {
  queue.tasks.remove(row);
  const { older, newer } = row;
  if (older === undefined) queue.oldest = newer;
  else older.newer = newer;
  if (newer === undefined) queue.newest = older;
  else newer.older = older;
  row.queue = undefined;
  row.older = undefined;
  row.newer = undefined;
}

function count(user: LaneUser, row: TaskRow, change: 1 | -1): void {
  for (const part of [user, user.project]) {
    part.size += change;
    part.cost += change * row.cost;
  }
  user.project.lane.size += change;
}

export function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}
