// Awaited tasks by project and id. A project's tasks are in the order of their last request to a leader, oldest
// first. Two steps find a task, without a text built from project and id. Owned by awaited-tasks.ts.

import type { AwaitedTask } from "./awaited-task.ts";

export class KeptTasks {
  readonly #tasksByProject = new Map<string, Map<string, AwaitedTask>>();

  get isEmpty(): boolean {
    return this.#tasksByProject.size === 0;
  }

  find(project: string, id: string): AwaitedTask | undefined {
    return this.#tasksByProject.get(project)?.get(id);
  }

  has(task: AwaitedTask): boolean {
    return this.find(task.project, task.id) === task;
  }

  /** Adds a task at the end of the order. */
  add(task: AwaitedTask): void {
    let tasks = this.#tasksByProject.get(task.project);
    if (tasks === undefined) {
      tasks = new Map();
      this.#tasksByProject.set(task.project, tasks);
    }
    tasks.set(task.id, task);
  }

  remove(task: AwaitedTask): void {
    const tasks = this.#tasksByProject.get(task.project);
    if (tasks?.get(task.id) !== task) return;
    tasks.delete(task.id);
    if (tasks.size === 0) this.#tasksByProject.delete(task.project);
  }

  clear(): void {
    this.#tasksByProject.clear();
  }

  *all(): Generator<AwaitedTask> {
    for (const tasks of this.#tasksByProject.values()) yield* tasks.values();
  }

  /** Tasks that a leader was last asked about at `beforeMs` or earlier. A project whose tasks were read comes last in
   *  the next call, so that a reader of a few tasks reaches every project. */
  *askedBefore(beforeMs: number): Generator<AwaitedTask> {
    for (const [project, tasks] of [...this.#tasksByProject]) {
      this.#tasksByProject.delete(project);
      this.#tasksByProject.set(project, tasks);
      for (const task of tasks.values()) {
        if (task.askedAtMs > beforeMs) break;
        yield task;
      }
    }
  }
}
