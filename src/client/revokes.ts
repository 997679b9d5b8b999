// Takes attempts from their agents. Each request names the attempt, so a repeat leaves a later attempt alone.

import * as z from "zod";
import { readerOf } from "../agent/options.ts";
import { revokeResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { Bulk, BulkResult, BulkVerb, ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

export interface RevokeOptions extends AskOptions {
  /** Project of the tasks. Default: the connection's; for a filter, all projects. */
  readonly project?: string;
  /** Number of the attempt to revoke, from 1. Default: the running attempt. Not with a filter. */
  readonly attempt?: number;
}

export interface RevokeOutcome {
  readonly taskId: string;
  readonly attempt: number;
  /** False when the attempt had ended before. */
  readonly revoked: boolean;
  /** State of the task afterwards: `queued`, or `dead-lettered` when the attempt was its last. With `revoked: false`
   *  any state. */
  readonly state: string;
}

export interface RevokesDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
}

/** States of a task with an attempt to revoke. */
export const revocableStates = ["assigned", "running"] as const;

export class Revokes {
  readonly #bulk: Bulk;
  readonly #verb: BulkVerb<RevokeOutcome>;

  constructor({ asker, subjects, bulk }: RevokesDeps) {
    this.#bulk = bulk;
    this.#verb = {
      name: "revoke",
      states: revocableStates,
      names: "attempt",
      ask: async (tasks, project, options) => {
        const message = { v: 1, tasks: tasks.map(({ task, number }) => ({ task, attempt: number })) };
        const subject = subjects.project(project, "revoke");
        const question = { kind: "command", subject, message, schema: revokeResponseSchema } as const;
        const { answers } = await asker.ask(question, options);
        return answers.map((answer) => {
          if (!answer.ok) return answer;
          const { task: taskId, attempt, revoked, state } = answer;
          return { taskId, attempt, revoked, state };
        });
      },
    };
  }

  /** Revokes the running attempt of a task by its id, or of many tasks. @param scope of tasks that name no project */
  async revoke(
    tasks: string | ManyTasks,
    scope: Scope,
    given: unknown,
  ): Promise<RevokeOutcome | BulkResult<RevokeOutcome>[]> {
    const { attempt: number, ...options } = readRevokeOptions("revoke", given);
    return await this.#bulk.perform(this.#verb, tasks, { scope, options, number });
  }
}

const readRevokeOptions = readerOf<RevokeOptions>({
  each: { ...askRules.each, project: projectName, attempt: z.int().min(1) },
  otherwise: askRules.otherwise,
  example: "{ timeoutMs: 5000 }",
});
