// Which project a task belongs to, for filters of events: only a task's submission and its retries say so in
// the journal.
// A reader that begins later asks a coordinator. Bounded; the longest unused are forgotten and asked for again.

import { taskOf } from "../audit/filter.ts";
import { WaggleError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import { taskStatusSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Event } from "../state/event.ts";
import type { Asker } from "./asker.ts";

export class TaskProjects {
  readonly #asker: Asker;
  readonly #subject: string;
  readonly #projectByTask = new Map<string, string>();

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subject = subjects.query(NO_PROJECT, "task");
  }

  learn(event: Event): void {
    if (event.type === "TaskSubmitted" || event.type === "TaskRetried")
      this.#remember(event.task.id, event.task.project);
  }

  /** Undefined for events of no project, and of tasks that ended so long ago that nobody knows them.
   *  @throws NoLeaderError, UnreachableError */
  async projectOf(event: Event): Promise<string | undefined> {
    if (event.type === "TaskSubmitted" || event.type === "TaskRetried") return event.task.project;
    if ("project" in event && event.project !== undefined) return event.project;
    const task = taskOf(event);
    if (task === undefined) return undefined;
    const project = this.#projectByTask.get(task) ?? (await this.#ask(task));
    if (project !== undefined) this.#remember(task, project);
    return project;
  }

  #remember(task: string, project: string): void {
    this.#projectByTask.delete(task);
    this.#projectByTask.set(task, project);
    if (this.#projectByTask.size <= limits.projectMemoryTasksMax) return;
    for (const oldest of this.#projectByTask.keys()) {
      this.#projectByTask.delete(oldest);
      return;
    }
  }

  async #ask(task: string): Promise<string | undefined> {
    const question = {
      kind: "query",
      subject: this.#subject,
      message: { v: 1, task },
      schema: taskStatusSchema,
    } as const;
    try {
      const status = await this.#asker.ask(question);
      return status.ok ? status.project : undefined;
    } catch (error) {
      if (error instanceof WaggleError && error.code === "WAGGLE_UNKNOWN_TASK") return undefined;
      throw error;
    }
  }
}
