// Numbered checks of the queues, and of agents idling beside waiting tasks (docs/invariants.md). Like the other checks
// of invariants.ts, they recount all that the core only counts.

import { type Demand, peersOf, standingFor } from "../scheduling/eligibility.ts";
import { isBudgeted, projectGate, swarmGate } from "../scheduling/gates.ts";
import { isHeap } from "../state/indexed-heap.ts";
import { isSameNeeds } from "../state/needs.ts";
import { isSameList, queueKey } from "../state/queues.ts";
import { firstTask, isServedEarlier, oldestTask } from "../state/service-order.ts";
import type { KindRow, QueueProject, QueueUser, SwarmState, TaskPartition, TaskRow } from "../state/state.ts";
import { refOf } from "../state/task-rows.ts";
import type { Invariant } from "./invariant.ts";
import type { Roll } from "./roll.ts";

export const queueInvariants: readonly Invariant[] = [{ number: 3, name: "queues", find: queues }];

export const queueInvariantsAfterTurns: readonly Invariant[] = [
  { number: 13, name: "work-conserving", find: workConserving },
];

function* queues(state: SwarmState, roll: Roll): Generator<string> {
  let queued = 0;
  const queuesOf = new Map<KindRow, number>();
  for (const [key, queue] of state.queueByKey) {
    queued += queue.size;
    queuesOf.set(queue.kindRow, (queuesOf.get(queue.kindRow) ?? 0) + 1);
    if (queue.key !== key || queueKey(queue.kind, queue.role, queue.needs) !== key)
      yield `queue ${queue.key} is kept as ${key}`;
    if (state.kindByName.get(queue.kind) !== queue.kindRow)
      yield `queue ${key} has a kind row outside the state`;
    yield* membersAgree(`queue ${key}`, queue, queue.memberByProject, queue.projects.size);
    for (const project of queue.memberByProject.values()) {
      if (state.projectById.get(project.row.project) !== project.row)
        yield `queue ${key} has a row of ${project.row.project} outside the state`;
      yield* partOfProject(state, project, roll);
    }
  }
  if (queued !== state.counts.queued)
    yield `${queued} tasks stand in queues, ${state.counts.queued} are queued`;
  for (const row of state.kindByName.values())
    if (row.queues !== (queuesOf.get(row) ?? 0)) yield `kind ${row.kind} counts ${row.queues} queues`;
}

function* partOfProject(state: SwarmState, project: QueueProject, roll: Roll): Generator<string> {
  const name = `${project.row.project} in queue ${project.queue.key}`;
  yield* membersAgree(name, project, project.memberByUser, project.users.size);
  let cost = 0;
  for (const user of project.memberByUser.values()) {
    cost += user.cost;
    yield* partOfUser(state, user, `${user.row.user} of ${name}`, roll);
  }
  if (project.cost !== cost) yield `${name} counts a cost of ${project.cost}`;
}

function* partOfUser(state: SwarmState, user: QueueUser, name: string, roll: Roll): Generator<string> {
  let size = 0;
  let cost = 0;
  for (const partition of user.partitions) {
    size += partition.tasks.size;
    cost += yield* tasksOf(state, partition, `a partition of ${name}`, roll);
    yield* listOf(partition, `a partition of ${name}`);
  }
  if (user.size !== size) yield `${name} counts ${user.size} tasks`;
  if (user.cost !== cost) yield `${name} counts a cost of ${user.cost}`;
  if (!isFirstNoted(user)) yield `${name} notes another task as its first or oldest`;
}

/** Each member of a level has tasks and a number in the level's order; sizes are sums. */
function* membersAgree(
  name: string,
  { size }: { readonly size: number },
  members: ReadonlyMap<string, QueueProject | QueueUser>,
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
    yield `${name} has ${members.size} members, ${inOrder} of them in order`;
}

/**
 * Checks a partition's tasks; returns the sum of their costs. While the same tasks stand at the same heap positions,
 * their order, costs and partition are unchanged. The roll lists tasks that are no longer live.
 */
function* tasksOf(
  state: SwarmState,
  partition: TaskPartition,
  name: string,
  roll: Roll,
): Generator<string, number> {
  const { tasks } = partition;
  if (tasks.size === 0) yield `${name} is empty`;
  const isKnown = roll.isKnown(partition);
  if (!isKnown && !isHeap(tasks, isServedEarlier)) yield `${name} is out of order`;
  let cost = 0;
  for (let at = 0; at < tasks.size; at += 1) {
    const row = tasks.at(at) as TaskRow;
    cost += row.cost;
    if (row.heapAt !== at) yield `${name} is out of order at ${row.spec.id}`;
    if (
      row.partition !== partition ||
      !isSameList(row.failedBy, partition.avoid) ||
      (!isKnown && !belongsIn(row, partition))
    )
      yield `task ${row.spec.id} is not one of ${name}`;
    if ((!isKnown || roll.gone.has(row)) && state.taskById.get(refOf(row.spec)) !== row)
      yield `${name} holds ${row.spec.id}, which is not live`;
  }
  if (!isKnown) roll.note(partition);
  return cost;
}

function* listOf(partition: TaskPartition, name: string): Generator<string> {
  let count = 0;
  let before = 0;
  for (let row = partition.oldest; row !== undefined && count <= partition.tasks.size; row = row.newer) {
    if (row.queuedOrder <= before || (row.newer === undefined && row !== partition.newest))
      yield `${name} is out of order of queueing at ${row.spec.id}`;
    before = row.queuedOrder;
    count += 1;
  }
  if (count !== partition.tasks.size) yield `${name} lists ${count} of ${partition.tasks.size} tasks by age`;
}

function isFirstNoted(user: QueueUser): boolean {
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

function belongsIn(row: TaskRow, partition: TaskPartition): boolean {
  const { kind, role, needs } = row.spec;
  const { row: userRow, project } = partition.user;
  const { queue } = project;
  const isItsQueue = kind === queue.kind && role === queue.role && isSameNeeds(needs, queue.needs);
  const isItsMember = row.userRow === userRow && row.projectRow === project.row;
  return isItsQueue && isItsMember;
}

/**
 * No waiting task has an eligible agent. Skips projects that draw on a budget: the gates may keep room for a task that
 * does not fit yet.
 */
function* workConserving(state: SwarmState): Generator<string> {
  if (swarmGate(state) !== undefined) return;
  const seen = new Set<string>();
  for (const queue of state.queueByKey.values()) {
    const { kind, role, needs } = queue;
    for (const project of queue.memberByProject.values()) {
      if (projectGate(project.row) !== undefined || isBudgeted(state, project.row)) continue;
      const access = state.grants.accessOf(project.row.project);
      const calling = { kind, role, needs, access };
      for (const { avoid } of [...project.memberByUser.values()].flatMap(({ partitions }) => partitions)) {
        const key = `${queue.key} ${access?.key} ${avoid.join(" ")}`;
        if (seen.has(key)) continue;
        seen.add(key);
        for (const demand of demandsOf(state, { ...calling, avoid })) {
          const peers = peersOf(state, demand);
          for (const agent of state.agentById.values()) {
            const standing = standingFor(state, agent, demand, peers, state.at);
            if (standing === "feasible" || standing === "probe")
              yield `queue ${queue.key} waits although agent ${agent.id} would take it (${standing})`;
          }
        }
      }
    }
  }
}

/** The task's own demand; where all its agents are on hold, that of the cheaper kind as well. */
function demandsOf(state: SwarmState, own: Demand): Demand[] {
  const { cheaper, cheaperType } = state.kindByName.get(own.kind)?.settings ?? {};
  if (cheaper === undefined || !peersOf(state, own).areOnHold) return [own];
  return [own, { ...own, kind: cheaper, agentType: cheaperType }];
}
