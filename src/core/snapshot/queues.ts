// Queues in a snapshot: the members of each level and their waits, in order. Each row belongs to the last row of the
// level above. A task's own fields give its partition, so all counts of a queue are counted again. The members'
// positions in the heaps follow from their accounts.

import type { AgentId, ProjectId, UserId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Needs } from "../../state/needs.ts";
import {
  addPartition,
  addProject,
  addQueue,
  addUser,
  append,
  isSameList,
  queueKey,
  type Waiting,
} from "../../state/queues.ts";
import type { KindRow, ProjectRow, QueueProject, QueueUser, SwarmState, TaskRow } from "../../state/state.ts";
import { addNew, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { sortInSteps } from "./sort-in-steps.ts";
import { readNeeds } from "./values.ts";

export function* queueRows({ queueByKey }: SwarmState): Generator<Row> {
  for (const { kind, role, needs, memberByProject } of queueByKey.values()) {
    yield ["queue", { kind, role, needs }];
    for (const project of memberByProject.values()) {
      yield ["queue-project", { project: project.row.project, ...waitingFields(project) }];
      for (const user of project.memberByUser.values()) {
        yield ["queue-user", { user: user.row.user, ...waitingFields(user) }];
        for (const { avoid } of user.partitions) yield ["partition", { avoid }];
      }
    }
  }
}

function waitingFields({ turns, sinceOrder, sinceTick, sinceTurn }: QueueProject | QueueUser): Waiting {
  return { turns, sinceOrder, sinceTick, sinceTurn };
}

/** Parts of queues before they are built: building needs their tasks. */
interface ReadQueue {
  readonly kindRow: KindRow;
  readonly role: string | undefined;
  readonly needs: Needs | undefined;
  readonly partByProject: Map<ProjectId, ReadProject>;
}

interface ReadProject {
  readonly row: ProjectRow;
  readonly waiting: Waiting;
  readonly partByUser: Map<UserId, ReadUser>;
}

interface ReadUser {
  readonly waiting: Waiting;
  readonly partitions: ReadPartition[];
}

interface ReadPartition {
  readonly avoid: readonly AgentId[];
  readonly tasks: TaskRow[];
}

export class QueueReader {
  readonly #state: SwarmState;
  readonly #queueByKey = new Map<string, ReadQueue>();
  #queue: ReadQueue | undefined;
  #project: ReadProject | undefined;
  #user: ReadUser | undefined;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readQueue(fields: Fields): void {
    const kindRow = known(this.#state.kindByName, fields.text<KindRow["kind"]>("kind"), "kind");
    const role = fields.optionalText("role");
    const needs = readNeeds(fields);
    this.#queue = { kindRow, role, needs, partByProject: new Map() };
    this.#project = undefined;
    this.#user = undefined;
    addNew(this.#queueByKey, queueKey(kindRow.kind, role, needs), this.#queue, "queue");
  }

  readProject(fields: Fields): void {
    const queue = this.#queue ?? refuse("the row stands below no queue");
    const row = known(this.#state.projectById, fields.text<ProjectId>("project"), "project");
    this.#project = { row, waiting: readWaiting(fields), partByUser: new Map() };
    this.#user = undefined;
    addNew(queue.partByProject, row.project, this.#project, "project in a queue,");
  }

  readUser(fields: Fields): void {
    const project = this.#project ?? refuse("the row stands below no project of a queue");
    const { user } = known(project.row.userByName, fields.text<UserId>("user"), "user");
    this.#user = { waiting: readWaiting(fields), partitions: [] };
    addNew(project.partByUser, user, this.#user, "user in a queue,");
  }

  readPartition(fields: Fields): void {
    const { partitions } = this.#user ?? refuse("the row stands below no user of a queue");
    const avoid = fields.names<AgentId>("avoid");
    if (partitionOf(partitions, avoid) !== undefined) refuse("a user has two equal partitions in a queue");
    partitions.push({ avoid, tasks: [] });
  }

  /** Adds a queued task that was read to its partition. */
  place(row: TaskRow): void {
    const { id, kind, role, needs } = row.spec;
    const queue = this.#queueByKey.get(queueKey(kind, role, needs));
    const user = queue?.partByProject.get(row.projectRow.project)?.partByUser.get(row.userRow.user);
    const partition = user && partitionOf(user.partitions, row.failedBy);
    if (partition === undefined) refuse(`task ${id} is queued and there is no partition for it`);
    partition.tasks.push(row);
  }

  /** After all tasks were read; in steps. */
  *build(): Generator<undefined, void> {
    for (const { kindRow, partByProject, ...asked } of this.#queueByKey.values()) {
      const queue = addQueue(this.#state, kindRow, asked);
      for (const { row, waiting, partByUser } of partByProject.values()) {
        const project = addProject(queue, row, waiting);
        for (const user of partByUser.values()) yield* buildUser(project, user);
        if (project.size === 0) refuse(`project ${row.project} in queue ${queue.key} has no tasks`);
      }
      if (queue.size === 0) refuse(`queue ${queue.key} has no tasks`);
    }
  }
}

function* buildUser(project: QueueProject, { waiting, partitions }: ReadUser): Generator<undefined, void> {
  const first = partitions[0]?.tasks[0] ?? refuse(`a user of ${project.row.project} in a queue has no tasks`);
  const user = addUser(project, first, waiting);
  for (const { avoid, tasks } of partitions) {
    if (tasks.length === 0) refuse(`a partition of ${user.row.user} in a queue has no tasks`);
    const partition = addPartition(user, avoid);
    const inOrder = yield* sortInSteps(tasks, ({ queuedOrder }) => queuedOrder);
    for (const [at, task] of inOrder.entries()) {
      if (at % limits.baseStepRows === 0) yield;
      if (task.queuedOrder === partition.newest?.queuedOrder)
        refuse(`two tasks were queued at ${task.queuedOrder}`);
      append(partition, task);
    }
  }
}

function partitionOf(
  partitions: readonly ReadPartition[],
  avoid: readonly AgentId[],
): ReadPartition | undefined {
  const [only] = partitions;
  if (partitions.length === 1 && only?.avoid.length === 0 && avoid.length === 0) return only;
  return partitions.find((partition) => isSameList(partition.avoid, avoid));
}

function readWaiting(fields: Fields): Waiting {
  return {
    turns: fields.whole("turns"),
    sinceOrder: fields.whole("sinceOrder"),
    sinceTick: fields.whole("sinceTick"),
    sinceTurn: fields.whole("sinceTurn"),
  };
}
