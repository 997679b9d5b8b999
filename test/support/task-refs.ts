// Tasks by their ids alone, for tests without equal ids in two projects.

import { batchIndex, instant, kind, projectId, type TaskRef, taskId, userId } from "../../src/ids.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import type { SwarmState, TaskRow } from "../../src/state/state.ts";

/** Names a task; `p` is the project of tests with a single project. */
export function aRef(id: string, project = "p"): TaskRef {
  return { project: projectId(project), task: taskId(id) };
}

/** Names the task with the given id in any project. If no project has the task, names `p`. */
export function refIn(state: SwarmState, id: string): TaskRef {
  const task = taskId(id);
  const [project = projectId("p")] = [
    ...state.taskById.projectsWith(task),
    ...state.endedById.projectsWith(task),
  ];
  return { project, task };
}

export function liveTask(state: SwarmState, id: string): TaskRow | undefined {
  return state.taskById.get(refIn(state, id));
}

export function endedTask(state: SwarmState, id: string): EndedTask | undefined {
  return state.endedById.get(refIn(state, id));
}

/** Ids of the live tasks, by the start of their rounds. */
export function liveIds(state: SwarmState | undefined): string[] {
  return state === undefined ? [] : [...state.taskById.values()].map(({ spec }) => spec.id);
}

/** An ended task of the project `p`, with defaults for what the caller leaves out. */
export function anEndedTask(more: Partial<EndedTask> = {}): EndedTask {
  return {
    id: taskId("t1"),
    project: projectId("p"),
    user: userId("u"),
    kind: kind("k"),
    hash: "h",
    state: "completed",
    sequence: 1,
    round: 1,
    attempts: 0,
    agent: undefined,
    submittedIdx: batchIndex(1),
    roundIdx: batchIndex(1),
    endedAt: instant(0),
    endedIdx: batchIndex(1),
    ...more,
  };
}

/** Puts a record of an ended task into a state, as the newest, in place of the task's earlier record. */
export function putEnded({ endedById }: SwarmState, ended: EndedTask): void {
  endedById.delete({ project: ended.project, task: ended.id });
  endedById.add(ended);
}
