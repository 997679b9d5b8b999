// Which task a query means. In the subject of a project it is that project's; in the subject of the swarm (`_`) it is
// the task of the only project that has one of that id.

import { NO_PROJECT, type ProjectId, type TaskId, type TaskRef } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Decoded } from "../../protocol/codec.ts";
import type { SwarmState } from "../../state/state.ts";
import { codedError } from "../requests/answers.ts";

/** Of a task that no project has, the project stays `_`. */
export function taskNamed(state: SwarmState, project: ProjectId, task: TaskId): Decoded<TaskRef> {
  if (project !== NO_PROJECT) return { ok: true, value: { project, task } };
  const projects = new Set([...state.taskById.projectsWith(task), ...state.endedById.projectsWith(task)]);
  if (projects.size > 1) return ambiguous(task, [...projects].sort());
  const [only = project] = projects;
  return { ok: true, value: { project: only, task } };
}

function ambiguous(task: TaskId, projects: readonly ProjectId[]) {
  const named = projects.slice(0, limits.ambiguousProjectsShown);
  const more = projects.length - named.length;
  const list = `${named.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
  return codedError(
    "WAGGLE_AMBIGUOUS_TASK",
    `${projects.length} projects have a task ${task}: ${list}. Name the project (\`--project ${named[0]}\`, or { project: "${named[0]}" })`,
    { field: "project" },
  );
}
