// Cancels tasks: a request wins or loses by the order of the journal.

import { isObject, unknownOption } from "../agent/option-names.ts";
import { InvalidMessageError } from "../errors.ts";
import { limits } from "../limits.ts";
import { cancelResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";
import { type AskMessage, asking, type Bulk, type BulkResult, eachAtOnce, type ManyTasks } from "./bulk.ts";
import type { CancelOutcome } from "./task-handle.ts";
import type { AcceptedTaskStatus } from "./task-stories.ts";

export interface CancelOptions extends AskOptions {
  /** The tasks' project. Default: the connection's. With a filter it is a condition of the filter instead. */
  readonly project?: string;
}

export interface CancelsDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly bulk: Bulk;
  status(id: string, options: AskOptions): Promise<AcceptedTaskStatus>;
}

export class Cancels {
  readonly #deps: CancelsDeps;

  constructor(deps: CancelsDeps) {
    this.#deps = deps;
  }

  /** @param project of tasks that name none */
  async cancel(
    tasks: ManyTasks,
    project: string,
    options: CancelOptions,
  ): Promise<BulkResult<CancelOutcome>[]> {
    checkOptions(options);
    const { bulk } = this.#deps;
    const states = ["queued", "delayed", "assigned", "running"] as const;
    const meant = await bulk.tasksOf(tasks, { verb: "cancel", project, states, options });
    return await bulk.run(meant, this.#ask, asking(options));
  }

  readonly #ask: AskMessage<CancelOutcome> = async (tasks, project, options) => {
    const { asker, subjects, status } = this.#deps;
    const message = { v: 1, tasks: tasks.map(({ task }) => task) };
    const subject = subjects.project(project, "cancel");
    const question = { kind: "deed", subject, message, schema: cancelResponseSchema } as const;
    const { answers } = await asker.ask(question, options);
    const outcomes: Awaited<ReturnType<AskMessage<CancelOutcome>>>[number][] = answers.map((answer) =>
      answer.ok ? outcomeOf(answer.task, answer.state) : answer,
    );
    const ended = [...answers.entries()].filter(
      ([, answer]) => !answer.ok && answer.code === "WAGGLE_CONFLICT",
    );
    await eachAtOnce(ended, limits.bulkQueriesAtOnce, async ([at]) => {
      const task = tasks[at]?.task ?? "";
      outcomes[at] = outcomeOf(task, (await status(task, options)).state);
    });
    return outcomes;
  };
}

function outcomeOf(taskId: string, state: string): CancelOutcome {
  return { taskId, cancelled: state === "cancelled", state };
}

const optionNames = {
  known: ["project", "timeoutMs", "signal"] satisfies (keyof CancelOptions)[],
  otherwise: { timeout: "timeoutMs" },
};

/** What types say and plain JavaScript does not. @throws InvalidMessageError naming the field */
function checkOptions(options: CancelOptions): void {
  if (!isObject(options))
    throw new InvalidMessageError('cancel: its options must be an object, as { project: "acme" }');
  const unknown = unknownOption(options, optionNames);
  if (unknown !== undefined)
    throw new InvalidMessageError(`cancel: ${unknown.message}`, { field: unknown.name });
}
