// Cancels tasks. The order of the journal decides between a cancellation and another outcome. Each request
// names the round to end, so a repeat after a retry leaves the new round alone.

import * as z from "zod";
import { readerOf } from "../agent/options.ts";
import { cancelResponseSchema, type Outcome } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { Bulk, BulkResult, BulkVerb, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface CancelOptions extends AskOptions {
  /** Project of the tasks. Default: the connection's; for a filter, all projects. */
  readonly project?: string;
  /** The round to end, from 1; other rounds go on. Default: the task's present round. Not with a filter. */
  readonly round?: number;
}

/** Result of a cancellation. The order of the journal decides whether the task was cancelled. */
export interface CancelOutcome {
  readonly taskId: string;
  /** False when the round had ended before. */
  readonly cancelled: boolean;
  /** Final state of the round, `cancelled` or other. */
  readonly state: Outcome["state"];
}

export interface CancelsDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
}

/** States of a task in which it can be cancelled: the live states. */
export const cancellableStates = ["queued", "delayed", "assigned", "running"] as const;

export class Cancels {
  readonly #bulk: Bulk;
  readonly #verb: BulkVerb<CancelOutcome>;

  constructor({ asker, subjects, bulk }: CancelsDeps) {
    this.#bulk = bulk;
    this.#verb = {
      name: "cancel",
      states: cancellableStates,
      names: "round",
      ask: async (tasks, project, options) => {
        const message = { v: 1, tasks: tasks.map(({ task, number }) => ({ task, round: number })) };
        const subject = subjects.project(project, "cancel");
        const question = { kind: "command", subject, message, schema: cancelResponseSchema } as const;
        const { answers } = await asker.ask(question, options);
        return answers.map((answer) =>
          answer.ok
            ? { taskId: answer.task, cancelled: answer.state === "cancelled", state: answer.state }
            : answer,
        );
      },
    };
  }

  /** Cancels a task by its id, or many tasks. @param scope of tasks that name no project */
  async cancel(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<CancelOutcome | BulkResult<CancelOutcome>[]> {
    const { round: number, ...options } = readCancelOptions("cancel", given);
    return await this.#bulk.perform(this.#verb, tasks, { scope, options, number });
  }
}

const handleRules = {
  each: { ...askRules.each, round: z.int().min(1) },
  otherwise: askRules.otherwise,
  example: "{ timeoutMs: 5000 }",
};

const readCancelOptions = readerOf<CancelOptions>({
  ...handleRules,
  each: { ...handleRules.each, project: projectName },
});

/** Options of a handle, which knows its project. @throws InvalidMessageError naming the option */
export const readHandleCancelOptions = readerOf<Omit<CancelOptions, "project">>(handleRules);
