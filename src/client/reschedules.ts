// Changes the time before which waiting tasks may not start. Each request names the round, so a repeat leaves a later
// round alone.

import * as z from "zod";
import { instant, readerOf } from "../agent/options.ts";
import { rescheduleResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { AskMessage, Bulk, BulkResult, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface RescheduleOptions extends AskOptions {
  /** Earliest start, as a Date or ms since the Unix epoch. A past time: the task is due at once. It replaces an
   *  earlier not-before and the wait for a retry. */
  readonly notBefore: Date | number;
  /** Project of the tasks. Default: the connection's; for a filter, all projects. */
  readonly project?: string;
  /** The round to reschedule, from 1. Default: the task's present round. Not with a filter. */
  readonly round?: number;
}

export interface RescheduleOutcome {
  readonly taskId: string;
  readonly round: number;
  /** ms since the Unix epoch. */
  readonly notBefore: number;
  /** State of the task afterwards: `delayed` until `notBefore`, or `queued` when it is due. */
  readonly state: string;
}

export interface ReschedulesDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
}

/** States of a task in which it can be rescheduled. */
export const reschedulableStates = ["queued", "delayed"] as const;

export class Reschedules {
  readonly #deps: ReschedulesDeps;

  constructor(deps: ReschedulesDeps) {
    this.#deps = deps;
  }

  /** Reschedules a task by its id, or many tasks. @param scope of tasks that name no project */
  async reschedule(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<RescheduleOutcome | BulkResult<RescheduleOutcome>[]> {
    const { notBefore, round: number, ...options } = readRescheduleOptions("reschedule", given);
    const ask = this.#asking(notBefore);
    const verb = { name: "reschedule", states: reschedulableStates, names: "round", ask } as const;
    return await this.#deps.bulk.perform(verb, tasks, { scope, options, number });
  }

  #asking(notBefore: Date | number): AskMessage<RescheduleOutcome> {
    const { asker, subjects } = this.#deps;
    return async (tasks, project, options) => {
      const message = {
        v: 1,
        tasks: tasks.map(({ task, number }) => ({ task, round: number })),
        notBefore: Number(notBefore),
      };
      const subject = subjects.project(project, "reschedule");
      const question = { kind: "command", subject, message, schema: rescheduleResponseSchema } as const;
      const { answers } = await asker.ask(question, options);
      return answers.map((answer) => {
        if (!answer.ok) return answer;
        const { task: taskId, round, notBefore: at, state } = answer;
        return { taskId, round, notBefore: at, state };
      });
    };
  }
}

const readRescheduleOptions = readerOf<RescheduleOptions>({
  each: { ...askRules.each, notBefore: instant, project: projectName, round: z.int().min(1) },
  required: ["notBefore"],
  otherwise: { ...askRules.otherwise, at: "notBefore", until: "notBefore" },
  example: "{ notBefore: new Date(Date.now() + 60_000) }",
});
