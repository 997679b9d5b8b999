// Changes that the page asks for, each with the command line that does the same. The swarm decides: the dashboard only
// checks what was asked, counts what a filter matches before and after the user confirmed, and passes it on.

import type { BulkResult } from "../client/bulk.ts";
import { cancellableStates } from "../client/cancels.ts";
import { retryableStates } from "../client/retries.ts";
import type { Swarm } from "../client/swarm.ts";
import type { TaskFilterOptions, TaskStateName } from "../client/task-lists.ts";
import { counted } from "../count-text.ts";
import { defined } from "../defined.ts";
import { InvalidMessageError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { ListedTask } from "../protocol/task-list-schemas.ts";
import type { Changes, ChangingSwarm } from "./changes.ts";
import { commandOf, filterCommand, submitCommand, taskCommand, tasksCommand } from "./command-text.ts";
import { HttpRefusal } from "./http-answer.ts";
import {
  type ActionFilter,
  actionSchemas,
  actionVerbs,
  checked,
  type NamedTasks,
  readTasksAction,
} from "./requests.ts";
import { taskRow } from "./views/tasks.ts";
import type { ActionAnswer, ActionVerb } from "./wire.ts";

type Verb = "cancel" | "retry";
type Results = NonNullable<ActionAnswer["results"]>;

/** States that each verb accepts, for a filter without states. */
const statesOf: Readonly<Record<Verb, readonly TaskStateName[]>> = {
  cancel: cancellableStates,
  retry: retryableStates,
};

export interface ActionDeps {
  /** Reads: which tasks match. */
  readonly swarm: Pick<Swarm, "tasks">;
  readonly changes: Changes;
}

export class Actions {
  readonly #deps: ActionDeps;

  constructor(deps: ActionDeps) {
    this.#deps = deps;
  }

  /** Verbs that the swarm's client knows. */
  get verbs(): readonly ActionVerb[] {
    return actionVerbs;
  }

  /** Sentences for the verbs that are refused. Their dry runs are answered. */
  get refusals(): Changes["refusals"] {
    return this.#deps.changes.refusals;
  }

  /** @throws InvalidMessageError naming the field; HttpRefusal 403 without the right for the change, 409 when the
   *  number of tasks changed; as the SDK */
  async perform(verb: ActionVerb, body: unknown): Promise<ActionAnswer> {
    switch (verb) {
      case "submit":
        return await this.#submit(body);
      case "cancel":
      case "retry":
        return await this.#touch(verb, body);
      case "drain":
      case "undrain":
        return await this.#drain(verb, body);
      case "pause":
      case "resume":
        return await this.#pause(verb, body);
      case "revoke":
        return await this.#revoke(body);
      case "reschedule":
        return await this.#reschedule(body);
    }
  }

  /** @throws HttpRefusal 403 */
  #changing(verb: ActionVerb): ChangingSwarm {
    const { swarm, refusals } = this.#deps.changes;
    const refusal = refusals[verb];
    if (refusal === undefined && swarm !== undefined) return swarm;
    throw new HttpRefusal(403, "WAGGLE_FORBIDDEN", refusal ?? "This dashboard only reads");
  }

  async #submit(body: unknown): Promise<ActionAnswer> {
    const { task, dryRun } = checked(body, actionSchemas.submit);
    const command = submitCommand({ task: defined(task) });
    if (dryRun === true) return answerOf({ command, isDryRun: true, count: 1, text: "one task" });
    const { deadlineAt, notBeforeAt, encoding, payload: text, ...rest } = task;
    const payload = encoding === undefined || text === undefined ? text : Buffer.from(text, "base64");
    const request = defined({ ...rest, payload, deadline: deadlineAt, notBefore: notBeforeAt });
    const handle = await this.#changing("submit").submit(request, {
      notify: false,
      timeoutMs: limits.dashboardActionMs,
    });
    const { id, project, warnings } = handle;
    const isKnown = handle.ack?.duplicate === true;
    const sentence = isKnown ? `${id} had been accepted before` : `${id} accepted`;
    const beware = warnings.map(({ message }) => message);
    return answerOf({
      ...{ command, count: 1, text: [sentence, ...beware].join("; ") },
      results: [{ task: id, project, ok: true, text: sentence }],
    });
  }

  async #touch(verb: Verb, body: unknown): Promise<ActionAnswer> {
    const asked = readTasksAction(body);
    if ("tasks" in asked) return await this.#touchNamed(verb, asked);
    const { filter, dryRun, expected } = asked;
    const wrong = filter.state?.find((state) => !statesOf[verb].includes(state));
    if (wrong !== undefined)
      throw new InvalidMessageError(
        `filter.state: no task in state ${wrong} can be ${verb === "cancel" ? "cancelled" : "retried"}; the states are ${statesOf[verb].join(", ")}`,
        { field: "filter.state" },
      );
    const listed = await this.#listed(verb, filter);
    const command = filterCommand(verb, filter, "--yes");
    if (dryRun === true) {
      const sample = listed.slice(0, limits.dashboardSampleShown).map(taskRow);
      const text = `${counted(listed.length, "task")} match`;
      return { ...answerOf({ command, isDryRun: true, count: listed.length, text }), sample };
    }
    if (expected !== listed.length)
      throw new HttpRefusal(
        409,
        "WAGGLE_CONFLICT",
        `${listed.length} tasks match now, and you confirmed ${expected}: nothing was done; look at the new number and confirm again`,
        { count: listed.length },
      );
    const tasks = listed.map(({ task, project, round }) => ({ task, project, round }));
    return await this.#run(verb, tasks, command);
  }

  async #touchNamed(verb: Verb, { tasks, dryRun }: NamedTasks): Promise<ActionAnswer> {
    const command = tasksCommand(verb, tasks);
    if (dryRun === true)
      return answerOf({ command, isDryRun: true, count: tasks.length, text: counted(tasks.length, "task") });
    return await this.#run(
      verb,
      tasks.map((task) => defined(task)),
      command,
    );
  }

  /** @throws HttpRefusal 400 above the bound */
  async #listed(verb: Verb, filter: ActionFilter): Promise<readonly ListedTask[]> {
    const options = defined({ ...filter, state: filter.state ?? statesOf[verb] }) as TaskFilterOptions;
    const listed: ListedTask[] = [];
    const all = this.#deps.swarm.tasks({
      ...options,
      sort: "submitted",
      fresh: true,
      timeoutMs: limits.dashboardActionMs,
    });
    for await (const task of all) {
      listed.push(task);
      if (listed.length > limits.dashboardActionTasksMax)
        throw new HttpRefusal(
          400,
          "WAGGLE_INVALID_MESSAGE",
          `more than ${limits.dashboardActionTasksMax} tasks match: narrow the filter, or use \`${filterCommand(verb, filter)}\``,
          { field: "filter" },
        );
    }
    return listed;
  }

  async #run(
    verb: Verb,
    tasks: readonly { readonly task: string; readonly project: string; readonly round?: number }[],
    command: string,
  ): Promise<ActionAnswer> {
    const options = { timeoutMs: limits.dashboardActionMs };
    const results =
      verb === "cancel"
        ? resultsOf(await this.#changing(verb).cancel(tasks, options), tasks, ({ state }) =>
            state === "cancelled" ? "cancelled" : `had ended before: ${state}`,
          )
        : resultsOf(
            await this.#changing(verb).retry(tasks, options),
            tasks,
            ({ round }) => `round ${round} began`,
          );
    const refused = results.filter(({ ok }) => !ok);
    const done = `${counted(results.length - refused.length, "task")} ${verb === "cancel" ? "cancelled" : "retried"}`;
    const text = refused.length === 0 ? done : `${done}; ${refused.length} refused`;
    const shown = [...refused, ...results.filter(({ ok }) => ok)].slice(0, limits.dashboardResultsShown);
    return {
      ...answerOf({ command, count: tasks.length, text, results: shown }),
      ok: refused.length === 0,
    };
  }

  async #revoke(body: unknown): Promise<ActionAnswer> {
    const { dryRun, ...ref } = checked(body, actionSchemas.revoke);
    const { task, project, attempt } = ref;
    const command = taskCommand("revoke", ref);
    if (dryRun === true) return answerOf({ command, isDryRun: true, count: 1, text: "one attempt" });
    const options = { project, ...defined({ attempt }), timeoutMs: limits.dashboardActionMs };
    const outcome = await this.#changing("revoke").revoke(task, options);
    const text = outcome.revoked
      ? `attempt ${outcome.attempt} revoked; the task is ${outcome.state}`
      : `attempt ${outcome.attempt} had ended before; the task is ${outcome.state}`;
    return answerOf({ command, count: 1, text, results: [{ task, project, ok: true, text }] });
  }

  async #reschedule(body: unknown): Promise<ActionAnswer> {
    const { dryRun, notBeforeAt, ...ref } = checked(body, actionSchemas.reschedule);
    const { task, project } = ref;
    const time = new Date(notBeforeAt).toISOString();
    const command = taskCommand("reschedule", ref, "--not-before", time);
    if (dryRun === true) return answerOf({ command, isDryRun: true, count: 1, text: `not before ${time}` });
    const options = { project, notBefore: notBeforeAt, timeoutMs: limits.dashboardActionMs };
    const { state } = await this.#changing("reschedule").reschedule(task, options);
    const text = state === "queued" ? "due at once: queued" : `${state} until ${time}`;
    return answerOf({ command, count: 1, text, results: [{ task, project, ok: true, text }] });
  }

  async #drain(verb: "drain" | "undrain", body: unknown): Promise<ActionAnswer> {
    const { agent, dryRun } = checked(body, actionSchemas[verb]);
    const command = commandOf(verb, agent);
    const text = verb === "drain" ? `${agent} drains: no new tasks` : `${agent} receives tasks again`;
    if (dryRun === true) return answerOf({ command, isDryRun: true, count: 1, text: `one agent: ${agent}` });
    await this.#changing(verb)[verb](agent, { timeoutMs: limits.dashboardActionMs });
    return answerOf({ command, count: 1, text });
  }

  async #pause(verb: "pause" | "resume", body: unknown): Promise<ActionAnswer> {
    const { project, dryRun } = checked(body, actionSchemas[verb]);
    const command = commandOf(verb, project);
    const subject = project === undefined ? "the whole swarm" : `project ${project}`;
    if (dryRun === true) return answerOf({ command, isDryRun: true, count: 1, text: subject });
    const { changed, warnings = [] } = await this.#changing(verb)[verb](project, {
      timeoutMs: limits.dashboardActionMs,
    });
    const now = verb === "pause" ? "is paused: running attempts continue" : "is resumed";
    const before = verb === "pause" ? "was paused before" : "was not paused";
    return answerOf({
      command,
      count: 1,
      text: [`${subject} ${changed ? now : before}`, ...warnings].join("; "),
    });
  }
}

function answerOf(
  answer: Pick<ActionAnswer, "command" | "count" | "text"> &
    Partial<Pick<ActionAnswer, "isDryRun" | "results">>,
): ActionAnswer {
  return { ok: true, isDryRun: false, ...answer };
}

function resultsOf<Outcome>(
  results: readonly BulkResult<Outcome & { readonly taskId: string }>[],
  tasks: readonly { readonly project: string }[],
  textOf: (outcome: Outcome) => string,
): Results {
  return results.map((result, at) => {
    const project = tasks[at]?.project;
    const named = { task: result.taskId, ...defined({ project }) };
    if (result.ok) return { ...named, ok: true, text: textOf(result) };
    return { ...named, ok: false, text: result.error.message, code: codeOf(result.error) };
  });
}

function codeOf(error: unknown): string {
  return error instanceof WaggleError ? error.code : "WAGGLE_INVARIANT";
}
