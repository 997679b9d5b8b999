// Tasks by their ids alone, for tests without equal ids in two projects.

import { projectId, type TaskRef, taskId } from "../../src/ids.ts";
import type { EndedTask, SwarmState, TaskRow } from "../../src/state/state.ts";

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
