// Opens the next round of tasks that ended without completing. Each request names the round to open, so
// repeating a request opens a round once.

import * as z from "zod";
import { instant, readerOf } from "../agent/options.ts";
import { retryResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { AwaitedTasks } from "./awaited-tasks.ts";
import type { AskMessage, Bulk, BulkResult, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface RetryOptions extends AskOptions {
  /** Project of the tasks. Default: the connection's; for a filter, all projects. */
  readonly project?: string;
  /** Deadline of the new round, as a Date or ms since the Unix epoch: the round ends `expired` unless it ends
   *  earlier. Default: none, whatever deadline the task had. */
  readonly deadline?: Date | number;
  /** The round to open, from 2; repeating the call opens the round once. Default: the round after the task's
   *  present round. Not with a filter. */
  readonly round?: number;
}

/** Acknowledgement of an opened round. */
export interface RetryOutcome {
  readonly taskId: string;
  /** The opened round, from 2. */
  readonly round: number;
}

export interface RetriesDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
  readonly awaitedTasks: AwaitedTasks;
}

/** States of a task in which it can be retried. */
export const retryableStates = ["failed", "cancelled", "expired", "dead-lettered"] as const;

export class Retries {
  readonly #deps: RetriesDeps;

  constructor(deps: RetriesDeps) {
    this.#deps = deps;
  }

  /** Retries a task by its id, or many tasks. @param scope of tasks that name no project */
  async retry(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<RetryOutcome | BulkResult<RetryOutcome>[]> {
    const { round: wanted, deadline, ...options } = readRetryOptions("retry", given);
    const ask = this.#asking(deadline);
    const verb = { name: "retry", states: retryableStates, names: "round", ask } as const;
    const number = wanted === undefined ? undefined : wanted - 1;
    return await this.#deps.bulk.perform(verb, tasks, { scope, options, number });
  }

  #asking(deadline: Date | number | undefined): AskMessage<RetryOutcome> {
    const { asker, subjects, awaitedTasks } = this.#deps;
    return async (tasks, project, options) => {
      const message = {
        v: 1,
        tasks: tasks.map(({ task, number }) => ({ task, round: number + 1 })),
        ...(deadline === undefined ? {} : { deadline: Number(deadline) }),
      };
      const subject = subjects.project(project, "retry");
      const question = { kind: "command", subject, message, schema: retryResponseSchema } as const;
      const { answers } = await asker.ask(question, options);
      for (const answer of answers)
        if (answer.ok) awaitedTasks.retried({ project, task: answer.task }, answer.round);
      return answers.map((answer) => (answer.ok ? { taskId: answer.task, round: answer.round } : answer));
    };
  }
}

const handleRules = {
  each: { ...askRules.each, deadline: instant, round: z.int().min(2) },
  otherwise: askRules.otherwise,
  example: "{ round: 2 }",
};

const readRetryOptions = readerOf<RetryOptions>({
  ...handleRules,
  each: { ...handleRules.each, project: projectName },
});

/** Options of a handle, which knows its project. @throws InvalidMessageError naming the option */
export const readHandleRetryOptions = readerOf<Omit<RetryOptions, "project">>(handleRules);
