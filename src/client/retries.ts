// Opens the next round of tasks that ended otherwise than completed. Each request names the round that it opens:
// asking twice opens it once.

import { isObject, unknownOption } from "../agent/option-names.ts";
import type { Clock, Random } from "../clock.ts";
import { InvalidMessageError, NoLeaderError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { retryResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";
import type { AwaitedTasks } from "./awaited-tasks.ts";
import { backoffMs } from "./backoff.ts";
import { errorFrom } from "./coded-error.ts";
import { instantOf } from "./task-request.ts";
import type { AcceptedTaskStatus } from "./task-stories.ts";

export interface RetryOptions extends AskOptions {
  /** The task's project. Default: the connection's. */
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
  readonly awaitedTasks: AwaitedTasks;
  readonly clock: Clock;
  readonly random: Random;
  status(id: string, options: AskOptions): Promise<AcceptedTaskStatus>;
}

export class Retries {
  readonly #deps: RetriesDeps;

  constructor(deps: RetriesDeps) {
    this.#deps = deps;
  }

  /** @param project of the task */
  async retry(id: string, project: string, options: RetryOptions): Promise<RetryOutcome> {
    checkOptions(options);
    const { clock, random } = this.#deps;
    const giveUpAtMs = clock.monotonicMs() + (options.timeoutMs ?? limits.askTimeoutMs);
    const round = options.round ?? (await this.#present(id, options, giveUpAtMs)).round + 1;
    for (let failures = 1; ; failures += 1) {
      const [answer] = await this.ask(
        [{ task: id, round }],
        project,
        restOf(options, giveUpAtMs - clock.monotonicMs()),
      );
      if (answer === undefined)
        throw new WaggleError("WAGGLE_UNREACHABLE", `nothing was said of task ${id}: retry it again`);
      if (answer.ok) return { taskId: id, round: answer.round };
      const waitMs = backoffMs(failures, random.next());
      // The journal could not be read just then.
      if (answer.code !== "WAGGLE_UNREACHABLE" || clock.monotonicMs() + waitMs >= giveUpAtMs)
        throw errorFrom(answer);
      await pause(clock, waitMs, options.signal);
      options.signal?.throwIfAborted();
    }
  }

  /** One answer for each item, in order. At most `limits.itemsPerMessageMax` items of one project. */
  async ask(
    tasks: readonly { readonly task: string; readonly round: number }[],
    project: string,
    { deadline, ...options }: RetryOptions,
  ) {
    const { asker, subjects, awaitedTasks } = this.#deps;
    const message = {
      v: 1,
      tasks,
      ...(deadline === undefined ? {} : { deadline: instantOf(deadline, "deadline") }),
    };
    const subject = subjects.project(project, "retry");
    const question = { kind: "deed", subject, message, schema: retryResponseSchema } as const;
    const { answers } = await asker.ask(question, options);
    for (const answer of answers) if (answer.ok) awaitedTasks.retried(answer.task, answer.round);
    return answers;
  }

  /** As a leader knows it: a standby may not have read of the last round yet, and to open that one again is nothing. */
  async #present(id: string, options: RetryOptions, giveUpAtMs: number): Promise<AcceptedTaskStatus> {
    const { clock, random, status } = this.#deps;
    for (let failures = 1; ; failures += 1) {
      const found = await status(id, restOf(options, giveUpAtMs - clock.monotonicMs()));
      if (found.stale !== true) return found;
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

function restOf({ signal, deadline }: RetryOptions, leftMs: number): RetryOptions {
  return {
    timeoutMs: Math.max(1, leftMs),
    ...(signal === undefined ? {} : { signal }),
    ...(deadline === undefined ? {} : { deadline }),
  };
}

const optionNames = {
  known: ["project", "deadline", "round", "timeoutMs", "signal"] satisfies (keyof RetryOptions)[],
  otherwise: { timeout: "timeoutMs" },
};

/** What types say and plain JavaScript does not. @throws InvalidMessageError naming the field */
function checkOptions(options: RetryOptions): void {
  if (!isObject(options))
    throw new InvalidMessageError("retry: its options must be an object, as { round: 2 }");
  const unknown = unknownOption(options, optionNames);
  if (unknown !== undefined)
    throw new InvalidMessageError(`retry: ${unknown.message}`, { field: unknown.name });
  const { round, deadline } = options;
  if (round !== undefined && !(Number.isSafeInteger(round) && round >= 2))
    throw new InvalidMessageError(`round: must be a whole number from 2, not ${String(round)}`, {
      field: "round",
    });
  if (deadline !== undefined) instantOf(deadline, "deadline");
}
