// Actions on many tasks: tasks named by the caller, or all tasks matching a filter. A message holds tasks of a single
// project, up to `limits.itemsPerMessageMax`. Each task gets its own result, in order. The verbs' files define the
// requests: cancels.ts, retries.ts, revokes.ts, reschedules.ts.
//
// A message names the round of each task, or its attempt. So a message may be sent again, even to the next leader:
// rounds and attempts opened meanwhile stay unchanged.

import * as z from "zod";
import { argument, judged, readerOf } from "../agent/options.ts";
import type { Clock, Random } from "../clock.ts";
import { InvalidMessageError, NoLeaderError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { type CodedError, taskIdSchema } from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";
import { type ListedTask, listedTaskSchema } from "../protocol/task-list-schemas.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import type { AskOptions } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";
import { projectIn, type Scope } from "./scope.ts";
import { readTaskFilter, type TaskFilterOptions, type TaskLists, type TaskStateName } from "./task-lists.ts";
import { projectName } from "./task-request.ts";
import type { AcceptedTaskStatus, TaskOptions } from "./task-stories.ts";

/** A task by its id, for example a `ListedTask`. */
export interface TaskRef {
  readonly task: string;
  /** Default: the project of the call, or else the connection's. */
  readonly project?: string;
  /** The round of the task when listed: a cancel ends this round, a retry opens the next. Default: the present
   *  round, looked up at a leader. */
  readonly round?: number;
  /** The task's attempts when listed: a revoke ends the last of them. Default: the running attempt, looked up at a
   *  leader. */
  readonly attempts?: number;
}

/** Tasks by name, or a filter with at least one condition. */
export type ManyTasks = readonly (string | TaskRef)[] | TaskFilterOptions;

/** Result of a bulk action for a task. */
export type BulkResult<Outcome> =
  | ({ readonly ok: true } & Outcome)
  | { readonly ok: false; readonly taskId: string; readonly error: WaggleError };

/** A task with its project. */
type PlacedTask = TaskRef & { readonly project: string };
/** A task with its project, and the number of the round or the attempt that the message names. */
type NumberedTask = PlacedTask & { readonly number: number };

export interface BulkDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly lists: TaskLists;
  status(id: string, options: TaskOptions): Promise<AcceptedTaskStatus>;
}

type Answer<Outcome> = Outcome | CodedError;

/** Sends a message for several tasks. @returns one answer per task, in order */
export type AskMessage<Outcome> = (
  tasks: readonly NumberedTask[],
  project: string,
  options: AskOptions,
) => Promise<readonly Answer<Outcome>[]>;

export interface BulkVerb<Outcome> {
  readonly name: string;
  /** Default states of a filter without states. */
  readonly states: readonly TaskStateName[];
  /** The number that a message carries beside each task id: the number of the round, or of the running attempt. */
  readonly names: "round" | "attempt";
  readonly ask: AskMessage<Outcome>;
}

export interface BulkTerms {
  /** Scope of tasks without a named project. */
  readonly scope: Scope;
  readonly options: AskOptions & { readonly project?: string };
  /** Present round or attempt of tasks that name none. Undefined: a leader is asked. */
  readonly number: number | undefined;
}

export class Bulk {
  readonly #deps: BulkDeps;

  constructor(deps: BulkDeps) {
    this.#deps = deps;
  }

  /** Performs an action on a task by its id, or on many tasks. @returns an outcome for a single task, a list of results
   *  for many
   *  @throws InvalidMessageError naming the option; the refusal of a single task; as `TaskLists` does for a
   *    filter */
  async perform<Outcome extends { readonly taskId: string }>(
    verb: BulkVerb<Outcome>,
    tasks: string | ManyTasks,
    terms: BulkTerms,
  ): Promise<Outcome | BulkResult<Outcome>[]> {
    if (typeof tasks !== "string") return await this.#performAll(verb, tasks, terms);
    return onlyOf(await this.#performAll(verb, [argument([verb.name, "id"], tasks, taskIdSchema)], terms));
  }

  async #performAll<Outcome extends { readonly taskId: string }>(
    verb: BulkVerb<Outcome>,
    tasks: ManyTasks,
    { scope, options, number }: BulkTerms,
  ): Promise<BulkResult<Outcome>[]> {
    const { name, states, names, ask } = verb;
    const meant = isList(tasks)
      ? named(name, tasks, { ...scope, project: projectIn(scope, options.project) })
      : await this.#filtered(readFilter(verb, tasks, { scope, options, number }), { states, options });
    const { clock } = this.#deps;
    const asked = asking(options);
    const startedMs = clock.monotonicMs();
    const results: (BulkResult<Outcome> | undefined)[] = meant.map(() => undefined);
    const numberByPlace: (number | undefined)[] = meant.map((ref) => numberIn(names, ref) ?? number);
    await eachAtOnce([...meant.entries()], limits.bulkQueriesAtOnce, async ([place, ref]) => {
      try {
        numberByPlace[place] ??= numberOf(verb, await this.#present(name, ref, asked));
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!(error instanceof WaggleError)) throw error;
        results[place] = { ok: false, taskId: ref.task, error };
      }
    });
    const known = [...meant.entries()].flatMap(([place, ref]) => {
      const present = numberByPlace[place];
      return present === undefined ? [] : [{ place, ref: { ...ref, number: present } }];
    });
    const refs = known.map(({ ref }) => ref);
    // Each message of a call for several tasks has the full time.
    const spentMs = meant.length === 1 ? clock.monotonicMs() - startedMs : 0;
    const timeoutMs = Math.max(1, (asked.timeoutMs ?? limits.askTimeoutMs) - spentMs);
    const done = await this.#run(refs, ask, { ...asked, timeoutMs });
    for (const [at, { place }] of known.entries()) results[place] = done[at];
    return await this.#withProjects(
      results.filter((result) => result !== undefined),
      meant,
      options,
    );
  }

  /** The tasks matching a filter. Only a leader answers: a standby's list may be outdated. */
  async #filtered(
    filter: TaskFilterOptions,
    { states, options }: { readonly states: readonly TaskStateName[]; readonly options: AskOptions },
  ): Promise<readonly PlacedTask[]> {
    const listed: PlacedTask[] = [];
    const wanted = { sort: "submitted", ...filter, state: filter.state ?? states, fresh: true } as const;
    for await (const { task, project, round, attempts } of this.#deps.lists.all({
      ...wanted,
      ...asking(options),
    }))
      listed.push({ task, project, round, attempts });
    return listed;
  }

  /** The present status, from a leader. A standby may not have read the last retry yet, and the action would name an
   *  ended round. */
  async #present(
    verb: string,
    { project, task }: PlacedTask,
    options: AskOptions,
  ): Promise<AcceptedTaskStatus> {
    const { clock, status } = this.#deps;
    const giveUpAtMs = clock.monotonicMs() + (options.timeoutMs ?? limits.askTimeoutMs);
    const otherwise = () =>
      new NoLeaderError(`No leader answers, and only a leader can ${verb} task ${task}. Nothing was done`);
    const attempt = async () => {
      options.signal?.throwIfAborted();
      const timeoutMs = Math.max(1, giveUpAtMs - clock.monotonicMs());
      const found = await status(task, { ...options, project, timeoutMs });
      if (found.stale === true) throw new TryAgain({ otherwise });
      return found;
    };
    return await retried(attempt, { ...askPace(this.#deps), giveUpAtMs, hurry$: abortOf(options.signal) });
  }

  /** Sends all tasks, a few messages at once. After a message without an answer, no further message is sent.
   *  Failures of tasks are results, not errors.
   *  @throws the reason of `options.signal` */
  async #run<Outcome extends { readonly taskId: string }>(
    tasks: readonly NumberedTask[],
    ask: AskMessage<Outcome>,
    options: AskOptions,
  ): Promise<BulkResult<Outcome>[]> {
    const resultByPlace: (BulkResult<Outcome> | undefined)[] = tasks.map(() => undefined);
    let unanswered: WaggleError | undefined;
    const messages = messagesOf(tasks, this.#deps.transport.maxPayloadBytes / 2);
    await eachAtOnce(messages, limits.bulkMessagesAtOnce, async (places) => {
      const refuse = (error: WaggleError) => {
        for (const place of places)
          resultByPlace[place] ??= { ok: false, taskId: tasks[place]?.task ?? "", error };
      };
      if (unanswered !== undefined) return refuse(notSent(unanswered));
      try {
        await this.#exchange(places, { tasks, resultByPlace, ask, options });
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!(error instanceof WaggleError)) throw error;
        if (error.code !== "WAGGLE_INVALID_MESSAGE") unanswered = error;
        refuse(error);
      }
    });
    return resultByPlace.filter((result) => result !== undefined);
  }

  /** Sends a message, and repeats it for tasks with a temporarily unreadable payload. */
  async #exchange<Outcome extends { readonly taskId: string }>(
    places: readonly number[],
    {
      tasks,
      resultByPlace,
      ask,
      options,
    }: {
      readonly tasks: readonly NumberedTask[];
      readonly resultByPlace: (BulkResult<Outcome> | undefined)[];
      readonly ask: AskMessage<Outcome>;
      readonly options: AskOptions;
    },
  ): Promise<void> {
    const { clock } = this.#deps;
    const giveUpAtMs = clock.monotonicMs() + (options.timeoutMs ?? limits.askTimeoutMs);
    let left = places;
    const attempt = async () => {
      options.signal?.throwIfAborted();
      const asked = left.flatMap((place) => tasks[place] ?? []);
      const [first] = asked;
      if (first === undefined) return;
      const timeoutMs = Math.max(1, giveUpAtMs - clock.monotonicMs());
      const answers = await ask(asked, first.project, { ...options, timeoutMs });
      const unread: number[] = [];
      for (const [at, place] of left.entries()) {
        const answer = answers[at];
        const taskId = asked[at]?.task ?? "";
        if (answer === undefined) resultByPlace[place] = { ok: false, taskId, error: unsaid(taskId) };
        else if (!("code" in answer)) resultByPlace[place] = { ok: true, ...answer };
        else {
          resultByPlace[place] = { ok: false, taskId, error: errorFrom(answer) };
          if (answer.code === "WAGGLE_UNREACHABLE") unread.push(place);
        }
      }
      const isProgress = unread.length < left.length;
      left = unread;
      if (left.length > 0) throw new TryAgain({ isProgress });
    };
    try {
      await retried(attempt, { ...askPace(this.#deps), giveUpAtMs, hurry$: abortOf(options.signal) });
    } catch (error) {
      if (!(error instanceof TryAgain)) throw error; // else each remaining task has its error
    }
  }

  /** For tasks unknown in the requested project: names the task's project. */
  async #withProjects<Outcome>(
    results: BulkResult<Outcome>[],
    tasks: readonly PlacedTask[],
    options: AskOptions,
  ): Promise<BulkResult<Outcome>[]> {
    const unknown = [...results.entries()].filter(
      ([, result]) => !result.ok && result.error.code === "WAGGLE_UNKNOWN_TASK",
    );
    await eachAtOnce(unknown, limits.bulkQueriesAtOnce, async ([at]) => {
      const ref = tasks[at];
      if (ref === undefined) return;
      // A query without a project fails when several projects have the task.
      const { project } = await this.#deps.status(ref.task, asking(options)).catch(() => ref);
      options.signal?.throwIfAborted();
      if (project !== ref.project)
        results[at] = { ok: false, taskId: ref.task, error: elsewhere(ref, project) };
    });
    return results;
  }
}

/** Runs `work` on every item, on `atOnce` items at a time. @throws the first error of `work` */
async function eachAtOnce<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}

/** The options of a single request. */
function asking({ timeoutMs, signal }: AskOptions): AskOptions {
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** The outcome of a call for a single task. @throws the task's error */
function onlyOf<Outcome>([result]: readonly BulkResult<Outcome>[]): Outcome {
  if (result === undefined) throw unsaid("");
  if (!result.ok) throw result.error;
  const { ok: _, ...outcome } = result;
  return outcome as Outcome;
}

/** Indices of tasks, grouped into messages: a single project per message, within `bytesMax`. */
function messagesOf(tasks: readonly PlacedTask[], bytesMax: number): readonly (readonly number[])[] {
  const messages: number[][] = [];
  const openByProject = new Map<string, { readonly places: number[]; bytes: number }>();
  for (const [place, { task, project }] of tasks.entries()) {
    const bytes = Buffer.byteLength(task) + ITEM_OVERHEAD_BYTES;
    let open = openByProject.get(project);
    if (
      open === undefined ||
      open.places.length === limits.itemsPerMessageMax ||
      open.bytes + bytes > bytesMax
    ) {
      open = { places: [], bytes: 0 };
      openByProject.set(project, open);
      messages.push(open.places);
    }
    open.places.push(place);
    open.bytes += bytes;
  }
  return messages;
}

/** Size of an item besides its id: names, quotes, a round. Refusals in the answer are longer and have the other
 *  half of a message. */
const ITEM_OVERHEAD_BYTES = 64;

function numberIn(names: BulkVerb<unknown>["names"], { round, attempts }: TaskRef): number | undefined {
  if (names === "round") return round;
  return attempts === 0 ? undefined : attempts; // a task listed before its first attempt may run now
}

/** @throws WaggleError `WAGGLE_CONFLICT` when the verb needs a running attempt, and there is none */
function numberOf({ name, names }: BulkVerb<unknown>, status: AcceptedTaskStatus): number {
  if (names === "round") return status.round;
  const { task, state, attempts } = status;
  if (state === "assigned" || state === "running") return attempts;
  throw new WaggleError(
    "WAGGLE_CONFLICT",
    `task ${task} is ${state}, not running: nothing to ${name}; \`waggle task ${task}\` shows its attempts`,
  );
}

function isList(tasks: ManyTasks): tasks is readonly (string | TaskRef)[] {
  return Array.isArray(tasks);
}

const anObject = judged<object>((input) =>
  typeof input === "object" && input !== null
    ? undefined
    : `must be an id, a list of ids, or a filter such as { state: "failed" }, not ${shown(input)}`,
);

/** @throws InvalidMessageError naming the condition, or the option that a filter does not permit */
function readFilter(
  { name: verb, names }: BulkVerb<unknown>,
  given: unknown,
  { scope, options, number }: BulkTerms,
): TaskFilterOptions {
  const filter = readTaskFilter(verb, argument([verb, "tasks"], given, anObject));
  if (Object.keys(filter).length === 0)
    throw new InvalidMessageError(
      `${verb}: a filter without a condition matches every task: give at least one condition, such as { state: "failed" }`,
    );
  if (number !== undefined)
    throw new InvalidMessageError(
      `${verb}: ${names}: only with ids; for a filter, each task's ${names} is its ${names} when listed`,
      { field: names },
    );
  const only = options.project ?? (scope.isBound ? scope.project : undefined);
  if (only === undefined) return filter;
  return {
    ...filter,
    project: projectIn({ project: projectIn(scope, only), isBound: true }, filter.project),
  };
}

/** Accepts all fields of a `ListedTask`, so that listed tasks can be passed on unchanged. */
const readRef = readerOf<TaskRef & Partial<ListedTask>>({
  each: {
    ...listedTaskSchema.shape,
    task: taskIdSchema,
    project: projectName,
    round: z.int().min(1),
    attempts: z.int().min(0),
  },
  required: ["task"],
  otherwise: { id: "task", taskId: "task" },
  example: '{ task: "t1", round: 2 }',
});

function named(verb: string, tasks: readonly unknown[], scope: Scope): readonly PlacedTask[] {
  return tasks.map((given, at) => {
    const call = `${verb}: tasks[${at}]`;
    const item = typeof given === "string" ? { task: given } : argument([verb, `tasks[${at}]`], given, aRef);
    const { task, project, round, attempts } = readRef(call, item);
    return {
      task,
      project: projectIn(scope, project),
      ...(round === undefined ? {} : { round }),
      ...(attempts === undefined ? {} : { attempts }),
    };
  });
}

const aRef = judged<object>((input) =>
  typeof input === "object" && input !== null && !Array.isArray(input)
    ? undefined
    : `must be a task's id, or an object such as { task: "t1", round: 2 }, not ${shown(input)}`,
);

function elsewhere({ task, project }: PlacedTask, found: string): WaggleError {
  return new WaggleError(
    "WAGGLE_UNKNOWN_TASK",
    `task ${task} is not in project ${project} but in project ${found}: name that project (\`--project ${found}\`, ` +
      `or { project: "${found}" })`,
    { field: "project" },
  );
}

function unsaid(task: string): WaggleError {
  return new WaggleError("WAGGLE_UNREACHABLE", `the answer does not mention task ${task}: try again`);
}

function notSent(cause: WaggleError): WaggleError {
  return new NoLeaderError("Not sent, because the preceding message got no answer. Nothing was done", {
    cause,
  });
}
