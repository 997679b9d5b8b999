// Tasks by their ids alone, for tests in which no two projects have a task of one id.

import { projectId, type TaskRef, taskId } from "../../src/ids.ts";
import type { EndedTask, SwarmState, TaskRow } from "../../src/state/state.ts";

/** Names a task; `p` is the project of tests that need but one. */
export function aRef(id: string, project = "p"): TaskRef {
  return { project: projectId(project), task: taskId(id) };
}

/** The task of that id in the project that has one; in project `p` where none has. */
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

/** Ids of the live tasks, in the order in which their rounds began. */
export function liveIds(state: SwarmState | undefined): string[] {
  return state === undefined ? [] : [...state.taskById.values()].map(({ spec }) => spec.id);
}
