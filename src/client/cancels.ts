// Cancels tasks: a request wins or loses by the order of the journal. Each request names the round that it ends: sent
// again after a retry, it leaves the new round alone.

import { z } from "zod";
import { readerOf } from "../agent/options.ts";
import { cancelResponseSchema, type Outcome } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { Bulk, BulkResult, BulkVerb, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface CancelOptions extends AskOptions {
  /** The tasks' project. Default: the connection's; of a filter, all projects. */
  readonly project?: string;
  /** The round to end, from 1, where it is known: another round goes on. Default: the task's present round. Not with a
   *  filter. */
  readonly round?: number;
}

/** What became of a request to cancel: it wins or loses by the order of the journal. */
export interface CancelOutcome {
  readonly taskId: string;
  /** False: the round had ended otherwise. */
  readonly cancelled: boolean;
  /** How the round ended, `cancelled` or otherwise. */
  readonly state: Outcome["state"];
}

export interface CancelsDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
}

/** States of tasks that can be cancelled: the live ones. */
export const cancellableStates = ["queued", "delayed", "assigned", "running"] as const;

export class Cancels {
  readonly #bulk: Bulk;
  readonly #verb: BulkVerb<CancelOutcome>;

  constructor({ asker, subjects, bulk }: CancelsDeps) {
    this.#bulk = bulk;
    this.#verb = {
      name: "cancel",
      states: cancellableStates,
      ask: async (tasks, project, options) => {
        const message = { v: 1, tasks: tasks.map(({ task, round }) => ({ task, round })) };
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

  /** One task by its id, or many. @param scope of tasks that name no project */
  async cancel(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<CancelOutcome | BulkResult<CancelOutcome>[]> {
    const { round, ...options } = readCancelOptions("cancel", given);
    return await this.#bulk.perform(this.#verb, tasks, { scope, options, round });
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

/** Of a handle, which knows its project. @throws InvalidMessageError naming the option */
export const readHandleCancelOptions = readerOf<Omit<CancelOptions, "project">>(handleRules);
