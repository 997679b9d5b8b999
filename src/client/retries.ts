// Opens the next round of tasks that ended otherwise than completed. Each request names the round that it opens:
// asking twice opens it once.

import { z } from "zod";
import { instant, readerOf } from "../agent/options.ts";
import type { Clock, Random } from "../clock.ts";
import { NoLeaderError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { retryResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import type { AwaitedTasks } from "./awaited-tasks.ts";
import { backoffMs } from "./backoff.ts";
import {
  type AskMessage,
  asking,
  type Bulk,
  type BulkResult,
  eachAtOnce,
  type ManyTasks,
  type PlacedTask,
} from "./bulk.ts";
import type { Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";
import type { AcceptedTaskStatus } from "./task-stories.ts";

export interface RetryOptions extends AskOptions {
  /** The tasks' project. Default: the connection's. With a filter it is a condition of the filter instead. */
  readonly project?: string;
  /** The new round ends `expired` when it has not ended by then: a Date, or ms since the Unix epoch. Default: none,
   *  whatever the task had before. */
  readonly deadline?: Date | number;
  /** The round to open, from 2, where it is known: asked for again, it is not opened twice. Default: the one after the
   *  task's present round. */
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
  readonly clock: Clock;
  readonly random: Random;
  status(id: string, options: AskOptions): Promise<AcceptedTaskStatus>;
}

/** States of tasks that can be retried. */
export const retryableStates = ["failed", "cancelled", "expired", "dead-lettered"] as const;

export class Retries {
  readonly #deps: RetriesDeps;

  constructor(deps: RetriesDeps) {
    this.#deps = deps;
  }

  /** @param scope of tasks that name no project @param options as `readRetryOptions` gives them */
  async retry(tasks: ManyTasks, scope: Scope, options: RetryOptions): Promise<BulkResult<RetryOutcome>[]> {
    const { bulk } = this.#deps;
    const { round, deadline } = options;
    const states = retryableStates;
    const meant = await bulk.tasksOf(tasks, { verb: "retry", scope, states, options });
    const results: (BulkResult<RetryOutcome> | undefined)[] = meant.map(() => undefined);
    const known: { readonly place: number; readonly ref: PlacedTask }[] = [];
    await eachAtOnce([...meant.entries()], limits.bulkQueriesAtOnce, async ([place, ref]) => {
      try {
        const present =
          ref.round ?? (round === undefined ? await this.#present(ref.task, options) : round - 1);
        known.push({ place, ref: { ...ref, round: present } });
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!(error instanceof WaggleError)) throw error;
        results[place] = { ok: false, taskId: ref.task, error };
      }
    });
    known.sort((a, b) => a.place - b.place);
    const done = await bulk.run(
      known.map(({ ref }) => ref),
      this.#asking(deadline),
      asking(options),
    );
    for (const [at, { place }] of known.entries()) results[place] = done[at];
    return results.filter((result) => result !== undefined);
  }

  #asking(deadline: Date | number | undefined): AskMessage<RetryOutcome> {
    const { asker, subjects, awaitedTasks } = this.#deps;
    return async (tasks, project, options) => {
      const message = {
        v: 1,
        tasks: tasks.map(({ task, round = 1 }) => ({ task, round: round + 1 })),
        ...(deadline === undefined ? {} : { deadline: Number(deadline) }),
      };
      const subject = subjects.project(project, "retry");
      const question = { kind: "deed", subject, message, schema: retryResponseSchema } as const;
      const { answers } = await asker.ask(question, options);
      for (const answer of answers) if (answer.ok) awaitedTasks.retried(answer.task, answer.round);
      return answers.map((answer) => (answer.ok ? { taskId: answer.task, round: answer.round } : answer));
    };
  }

  /** The present round as a leader knows it: a standby may not have read of the last round yet, and to open that round
   *  again does nothing. */
  async #present(id: string, options: RetryOptions): Promise<number> {
    const { clock, random, status } = this.#deps;
    const giveUpAtMs = clock.monotonicMs() + (options.timeoutMs ?? limits.askTimeoutMs);
    for (let failures = 1; ; failures += 1) {
      const timeoutMs = Math.max(1, giveUpAtMs - clock.monotonicMs());
      const found = await status(id, { ...asking(options), timeoutMs });
      if (found.stale !== true) return found.round;
      const waitMs = backoffMs(failures, random.next());
      if (clock.monotonicMs() + waitMs >= giveUpAtMs)
        throw new NoLeaderError(
          `No leader answers, and only a leader can retry task ${id}. Nothing was done`,
        );
      await pause(clock, waitMs, options.signal);
      options.signal?.throwIfAborted();
    }
  }
}

const handleRules = {
  each: { ...askRules.each, deadline: instant, round: z.int().min(2) },
  otherwise: askRules.otherwise,
  example: "{ round: 2 }",
};

/** @throws InvalidMessageError naming the option */
export const readRetryOptions = readerOf<RetryOptions>({
  ...handleRules,
  each: { ...handleRules.each, project: projectName },
});

/** Of a handle, which knows its project. @throws InvalidMessageError naming the option */
export const readHandleRetryOptions = readerOf<Omit<RetryOptions, "project">>(handleRules);
