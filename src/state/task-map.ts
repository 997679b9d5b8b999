// Tasks by project and id, in order of insertion. Two nested maps: a look-up reads two keys that every event and
// message carries, and builds no string (docs/adr/0027-task-ids-belong-to-projects.md).

import type { ProjectId, TaskId, TaskRef } from "../ids.ts";
import { AgedMap, type Entry, type EntryIndex } from "./aged-map.ts";

export class TaskMap<Value> extends AgedMap<TaskRef, Value> {
  readonly #index: ProjectIndex<Value>;

  constructor() {
    const index = new ProjectIndex<Value>();
    super(index);
    this.#index = index;
  }

  /**
   * A new task becomes the newest; a known task keeps its position. Copies the pair out of `ref`, which may be a whole
   * event.
   */
  override set({ project, task }: TaskRef, value: Value): this {
    return super.set({ project, task }, value);
  }

  /** Projects with a task of this id, in no particular order. Cost: linear in the number of projects with tasks. */
  *projectsWith(task: TaskId): Generator<ProjectId> {
    for (const [project, entryById] of this.#index.byProject) if (entryById.has(task)) yield project;
  }
}

class ProjectIndex<Value> implements EntryIndex<TaskRef, Value> {
  /** None of them empty. */
  readonly byProject = new Map<ProjectId, Map<TaskId, Entry<TaskRef, Value>>>();
  size = 0;
  /** The last find, still in the map: deciding and applying an event ask for one task several times. */
  #last: Entry<TaskRef, Value> | undefined;

  get({ project, task }: TaskRef): Entry<TaskRef, Value> | undefined {
    const last = this.#last;
    if (last !== undefined && last.key.task === task && last.key.project === project) return last;
    const found = this.byProject.get(project)?.get(task);
    if (found !== undefined) this.#last = found;
    return found;
  }

  /** Requires that the task is not in the map. */
  set({ project, task }: TaskRef, entry: Entry<TaskRef, Value>): void {
    const known = this.byProject.get(project);
    if (known === undefined) this.byProject.set(project, new Map([[task, entry]]));
    else known.set(task, entry);
    this.size += 1;
  }

  delete({ project, task }: TaskRef): void {
    const entryById = this.byProject.get(project);
    if (entryById?.delete(task) !== true) return;
    this.#last = undefined;
    this.size -= 1;
    if (entryById.size === 0) this.byProject.delete(project);
  }
}
