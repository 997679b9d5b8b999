// Cancels tasks: a request wins or loses by the order of the journal.

import { readerOf } from "../agent/options.ts";
import { limits } from "../limits.ts";
import { cancelResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import { type AskMessage, asking, type Bulk, type BulkResult, eachAtOnce, type ManyTasks } from "./bulk.ts";
import type { Scope } from "./scope.ts";
import type { CancelOutcome } from "./task-handle.ts";
import { projectName } from "./task-request.ts";
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

/** States of tasks that can be cancelled: the live ones. */
export const cancellableStates = ["queued", "delayed", "assigned", "running"] as const;

export class Cancels {
  readonly #deps: CancelsDeps;

  constructor(deps: CancelsDeps) {
    this.#deps = deps;
  }

  /** @param scope of tasks that name no project @param options as `readCancelOptions` gives them */
  async cancel(tasks: ManyTasks, scope: Scope, options: CancelOptions): Promise<BulkResult<CancelOutcome>[]> {
    const { bulk } = this.#deps;
    const states = cancellableStates;
    const meant = await bulk.tasksOf(tasks, { verb: "cancel", scope, states, options });
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

/** @throws InvalidMessageError naming the option */
export const readCancelOptions = readerOf<CancelOptions>({
  ...askRules,
  each: { ...askRules.each, project: projectName },
});
