// What must be true of the queues, and that nobody idles beside one, as numbered checks (docs/invariants.md). As in
// invariants.ts, whose lists these belong to, they recount what the core only counts.

import { peersOf, standingFor } from "../scheduling/eligibility.ts";
import { isBudgeted, projectGate, swarmGate } from "../scheduling/gates.ts";
import { isHeap } from "../state/indexed-heap.ts";
import { isSameList, laneKey } from "../state/lanes.ts";
import { firstTask, isServedEarlier, oldestTask } from "../state/service-order.ts";
import type { KindRow, LaneProject, LaneUser, SwarmState, TaskQueue, TaskRow } from "../state/state.ts";
import { refOf } from "../state/task-rows.ts";
import type { Invariant } from "./invariant.ts";
import type { Roll } from "./roll.ts";

export const laneInvariants: readonly Invariant[] = [{ number: 3, name: "lanes", find: lanes }];

export const laneInvariantsAfterTurns: readonly Invariant[] = [
  { number: 13, name: "work-conserving", find: workConserving },
];

function* lanes(state: SwarmState, roll: Roll): Generator<string> {
  let queued = 0;
  const lanesOf = new Map<KindRow, number>();
  for (const [key, lane] of state.laneByKey) {
    queued += lane.size;
    lanesOf.set(lane.kindRow, (lanesOf.get(lane.kindRow) ?? 0) + 1);
    if (lane.key !== key || laneKey(lane.kind, lane.role) !== key) yield `lane ${lane.key} is kept as ${key}`;
    if (state.kindByName.get(lane.kind) !== lane.kindRow)
      yield `lane ${key} has a row of its kind that nobody reads`;
    yield* membersAgree(`lane ${key}`, lane, lane.memberByProject, lane.projects.size);
    for (const project of lane.memberByProject.values()) {
      if (state.projectById.get(project.row.project) !== project.row)
        yield `lane ${key} has a row of ${project.row.project} that nobody reads`;
      yield* partOfProject(state, project, roll);
    }
  }
  if (queued !== state.counts.queued)
    yield `${queued} tasks stand in lanes, ${state.counts.queued} are queued`;
  for (const row of state.kindByName.values())
    if (row.lanes !== (lanesOf.get(row) ?? 0)) yield `kind ${row.kind} counts ${row.lanes} lanes`;
}

function* partOfProject(state: SwarmState, project: LaneProject, roll: Roll): Generator<string> {
  const name = `${project.row.project} in lane ${project.lane.key}`;
  yield* membersAgree(name, project, project.memberByUser, project.users.size);
  let cost = 0;
  for (const user of project.memberByUser.values()) {
    cost += user.cost;
    yield* partOfUser(state, user, `${user.row.user} of ${name}`, roll);
  }
  if (project.cost !== cost) yield `${name} counts a cost of ${project.cost}`;
}

function* partOfUser(state: SwarmState, user: LaneUser, name: string, roll: Roll): Generator<string> {
  let size = 0;
  let cost = 0;
  for (const queue of user.queues) {
    size += queue.tasks.size;
    cost += yield* tasksOf(state, queue, `a queue of ${name}`, roll);
    yield* listOf(queue, `a queue of ${name}`);
  }
  if (user.size !== size) yield `${name} counts ${user.size} tasks`;
  if (user.cost !== cost) yield `${name} counts a cost of ${user.cost}`;
  if (!isFirstNoted(user)) yield `${name} notes another task as its first or oldest`;
}

/** Whoever stands in a level has tasks and stands in its order; sizes are sums. */
function* membersAgree(
  name: string,
  { size }: { readonly size: number },
  members: ReadonlyMap<string, LaneProject | LaneUser>,
  inOrder: number,
): Generator<string> {
  let counted = 0;
  let standing = 0;
  for (const member of members.values()) {
    counted += member.size;
    if (member.number !== -1) standing += 1;
  }
  if (size === 0) yield `${name} is empty`;
  if (size !== counted) yield `${name} counts ${size} tasks`;
  if (standing !== members.size || inOrder !== members.size)
    yield `${name} has ${members.size} members, of whom ${inOrder} stand in order`;
}

/** Returns the sum of their costs. While the same tasks stand in the same places, their order, their costs and where
 *  they belong are what they were; of what was live, what is not any more stands in the roll. */
function* tasksOf(state: SwarmState, queue: TaskQueue, name: string, roll: Roll): Generator<string, number> {
  const { tasks } = queue;
  if (tasks.size === 0) yield `${name} is empty`;
  const isKnown = roll.isKnown(queue);
  if (!isKnown && !isHeap(tasks, isServedEarlier)) yield `${name} is out of order`;
  let cost = 0;
  for (let at = 0; at < tasks.size; at += 1) {
    const row = tasks.at(at) as TaskRow;
    cost += row.cost;
    if (row.heapAt !== at) yield `${name} is out of order at ${row.spec.id}`;
    if (row.queue !== queue || !isSameList(row.failedBy, queue.avoid) || (!isKnown && !belongsIn(row, queue)))
      yield `task ${row.spec.id} is not one of ${name}`;
    if ((!isKnown || roll.gone.has(row)) && state.taskById.get(refOf(row.spec)) !== row)
      yield `${name} holds ${row.spec.id}, which is not live`;
  }
  if (!isKnown) roll.note(queue);
  return cost;
}

function* listOf(queue: TaskQueue, name: string): Generator<string> {
  let count = 0;
  let before = 0;
  for (let row = queue.oldest; row !== undefined && count <= queue.tasks.size; row = row.newer) {
    if (row.queuedOrder <= before || (row.newer === undefined && row !== queue.newest))
      yield `${name} is out of order of queueing at ${row.spec.id}`;
    before = row.queuedOrder;
    count += 1;
  }
  if (count !== queue.tasks.size) yield `${name} lists ${count} of ${queue.tasks.size} tasks by age`;
}

function isFirstNoted(user: LaneUser): boolean {
  const [first, oldest] = [firstTask(user), oldestTask(user)];
  return (
    first === user.first &&
    first.spec.priority === user.firstPriority &&
    first.sequence === user.firstSequence &&
    oldest === user.oldest &&
    oldest.queuedOrder === user.oldestOrder &&
    oldest.queuedTurn === user.oldestTurn
  );
}

function belongsIn(row: TaskRow, queue: TaskQueue): boolean {
  const { kind, role } = row.spec;
  const { row: userRow, project } = queue.user;
  const isItsLane = kind === project.lane.kind && role === project.lane.role;
  const isItsMember = row.userRow === userRow && row.projectRow === project.row;
  return isItsLane && isItsMember;
}

/** Of what the gates let through: where a task does not fit a budget, room may be kept for it, so nothing that
 *  draws on the budget is looked at. */
function* workConserving(state: SwarmState): Generator<string> {
  if (swarmGate(state) !== undefined) return;
  const seen = new Set<string>();
  for (const lane of state.laneByKey.values()) {
    const peers = peersOf(state, lane);
    for (const project of lane.memberByProject.values()) {
      if (projectGate(project.row) !== undefined || isBudgeted(state, project.row)) continue;
      for (const { avoid } of [...project.memberByUser.values()].flatMap(({ queues }) => queues)) {
        const key = `${lane.key} ${avoid.join(" ")}`;
        if (seen.has(key)) continue;
        seen.add(key);
        const demand = { kind: lane.kind, role: lane.role, avoid };
        for (const agent of state.agentById.values()) {
          const standing = standingFor(state, agent, demand, peers, state.at);
          if (standing === "feasible" || standing === "probe")
            yield `lane ${lane.key} waits although agent ${agent.id} would take it (${standing})`;
        }
      }
    }
  }
}
