// Opens the next round of tasks that ended otherwise than completed. Each request names the round that it opens:
// asking twice opens it once.

import { z } from "zod";
import { instant, readerOf } from "../agent/options.ts";
import { retryResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { AwaitedTasks } from "./awaited-tasks.ts";
import type { AskMessage, Bulk, BulkResult, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface RetryOptions extends AskOptions {
  /** The tasks' project. Default: the connection's; of a filter, all projects. */
  readonly project?: string;
  /** The new round ends `expired` when it has not ended by then: a Date, or ms since the Unix epoch. Default: none,
   *  whatever the task had before. */
  readonly deadline?: Date | number;
  /** The round to open, from 2, where it is known: asked for again, it is not opened twice. Default: the one after the
   *  task's present round. Not with a filter. */
  readonly round?: number;
}

/** That the round of a task was opened. */
export interface RetryOutcome {
  readonly taskId: string;
  /** From 2. */
  readonly round: number;
}

export interface RetriesDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
  readonly awaitedTasks: AwaitedTasks;
}

/** States of tasks that can be retried. */
export const retryableStates = ["failed", "cancelled", "expired", "dead-lettered"] as const;

export class Retries {
  readonly #deps: RetriesDeps;

  constructor(deps: RetriesDeps) {
    this.#deps = deps;
  }

  /** One task by its id, or many. @param scope of tasks that name no project */
  async retry(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<RetryOutcome | BulkResult<RetryOutcome>[]> {
    const { round: wanted, deadline, ...options } = readRetryOptions("retry", given);
    const verb = { name: "retry", states: retryableStates, ask: this.#asking(deadline) };
    const round = wanted === undefined ? undefined : wanted - 1;
    return await this.#deps.bulk.perform(verb, tasks, { scope, options, round });
  }

  #asking(deadline: Date | number | undefined): AskMessage<RetryOutcome> {
    const { asker, subjects, awaitedTasks } = this.#deps;
    return async (tasks, project, options) => {
      const message = {
        v: 1,
        tasks: tasks.map(({ task, round }) => ({ task, round: round + 1 })),
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

/** Of a handle, which knows its project. @throws InvalidMessageError naming the option */
export const readHandleRetryOptions = readerOf<Omit<RetryOptions, "project">>(handleRules);
