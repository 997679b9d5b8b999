// Lanes in a snapshot: who is a member of what and since when, in their orders. Each row belongs to the last one of
// the level above it. Tasks say where they stand by what they are, so all that a lane counts is counted anew; where
// its members stand in the heaps follows from their accounts.

import type { AgentId, ProjectId, UserId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import {
  addLane,
  addProject,
  addQueue,
  addUser,
  append,
  isSameList,
  laneKey,
  type Waiting,
} from "../../state/lanes.ts";
import type { KindRow, LaneProject, LaneUser, ProjectRow, SwarmState, TaskRow } from "../../state/state.ts";
import { addNew, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { sortInSteps } from "./sort-in-steps.ts";

export function* laneRows({ laneByKey }: SwarmState): Generator<Row> {
  for (const { kind, role, memberByProject } of laneByKey.values()) {
    yield ["lane", { kind, role }];
    for (const project of memberByProject.values()) {
      yield ["lane-project", { project: project.row.project, ...waitingFields(project) }];
      for (const user of project.memberByUser.values()) {
        yield ["lane-user", { user: user.row.user, ...waitingFields(user) }];
        for (const { avoid } of user.queues) yield ["queue", { avoid }];
      }
    }
  }
}

function waitingFields({ turns, sinceOrder, sinceTick, sinceTurn }: LaneProject | LaneUser): Waiting {
  return { turns, sinceOrder, sinceTick, sinceTurn };
}

/** Parts of lanes before they are built, which needs their tasks. */
interface ReadLane {
  readonly kindRow: KindRow;
  readonly role: string | undefined;
  readonly partByProject: Map<ProjectId, ReadProject>;
}

interface ReadProject {
  readonly row: ProjectRow;
  readonly waiting: Waiting;
  readonly partByUser: Map<UserId, ReadUser>;
}

interface ReadUser {
  readonly waiting: Waiting;
  readonly queues: ReadQueue[];
}

interface ReadQueue {
  readonly avoid: readonly AgentId[];
  readonly tasks: TaskRow[];
}

export class LaneReader {
  readonly #state: SwarmState;
  readonly #laneByKey = new Map<string, ReadLane>();
  #lane: ReadLane | undefined;
  #project: ReadProject | undefined;
  #user: ReadUser | undefined;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readLane(fields: Fields): void {
    const kindRow = known(this.#state.kindByName, fields.text<KindRow["kind"]>("kind"), "kind");
    const role = fields.optionalText("role");
    this.#lane = { kindRow, role, partByProject: new Map() };
    this.#project = undefined;
    this.#user = undefined;
    addNew(this.#laneByKey, laneKey(kindRow.kind, role), this.#lane, "lane");
  }

  readProject(fields: Fields): void {
    const lane = this.#lane ?? refuse("it stands below no lane");
    const row = known(this.#state.projectById, fields.text<ProjectId>("project"), "project");
    this.#project = { row, waiting: readWaiting(fields), partByUser: new Map() };
    this.#user = undefined;
    addNew(lane.partByProject, row.project, this.#project, "project in a lane,");
  }

  readUser(fields: Fields): void {
    const project = this.#project ?? refuse("it stands below no project of a lane");
    const { user } = known(project.row.userByName, fields.text<UserId>("user"), "user");
    this.#user = { waiting: readWaiting(fields), queues: [] };
    addNew(project.partByUser, user, this.#user, "user in a lane,");
  }

  readQueue(fields: Fields): void {
    const { queues } = this.#user ?? refuse("it stands below no user of a lane");
    const avoid = fields.names<AgentId>("avoid");
    if (queueOf(queues, avoid) !== undefined) refuse("a user has two queues of one sort in a lane");
    queues.push({ avoid, tasks: [] });
  }

  /** A queued task was read. */
  place(row: TaskRow): void {
    const { id, kind, role } = row.spec;
    const lane = this.#laneByKey.get(laneKey(kind, role));
    const user = lane?.partByProject.get(row.projectRow.project)?.partByUser.get(row.userRow.user);
    const queue = user && queueOf(user.queues, row.failedBy);
    if (queue === undefined) refuse(`task ${id} is queued and there is no queue for it`);
    queue.tasks.push(row);
  }

  /** After all tasks were read; in steps. */
  *build(): Generator<undefined, void> {
    for (const { kindRow, role, partByProject } of this.#laneByKey.values()) {
      const lane = addLane(this.#state, kindRow, role);
      for (const { row, waiting, partByUser } of partByProject.values()) {
        const project = addProject(lane, row, waiting);
        for (const user of partByUser.values()) yield* buildUser(project, user);
        if (project.size === 0) refuse(`project ${row.project} in lane ${lane.key} has no tasks`);
      }
      if (lane.size === 0) refuse(`lane ${lane.key} has no tasks`);
    }
  }
}

function* buildUser(project: LaneProject, { waiting, queues }: ReadUser): Generator<undefined, void> {
  const first = queues[0]?.tasks[0] ?? refuse(`a user of ${project.row.project} in a lane has no tasks`);
  const user = addUser(project, first, waiting);
  for (const { avoid, tasks } of queues) {
    if (tasks.length === 0) refuse(`a queue of ${user.row.user} in a lane has no tasks`);
    const queue = addQueue(user, avoid);
    const inOrder = yield* sortInSteps(tasks, ({ queuedOrder }) => queuedOrder);
    for (const [at, task] of inOrder.entries()) {
      if (at % limits.snapshotStepRows === 0) yield;
      if (task.queuedOrder === queue.newest?.queuedOrder)
        refuse(`two tasks were queued at ${task.queuedOrder}`);
      append(queue, task);
    }
  }
}

function queueOf(queues: readonly ReadQueue[], avoid: readonly AgentId[]): ReadQueue | undefined {
  const [only] = queues;
  if (queues.length === 1 && only?.avoid.length === 0 && avoid.length === 0) return only;
  return queues.find((queue) => isSameList(queue.avoid, avoid));
}

function readWaiting(fields: Fields): Waiting {
  return {
    turns: fields.whole("turns"),
    sinceOrder: fields.whole("sinceOrder"),
    sinceTick: fields.whole("sinceTick"),
    sinceTurn: fields.whole("sinceTurn"),
  };
}
