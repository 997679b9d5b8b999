// Lists of tasks: page by page, and what is done to all that a filter takes.

import { isObject, unknownOption } from "../agent/option-names.ts";
import type { Clock, Random } from "../clock.ts";
import { InvalidMessageError, NoLeaderError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { check } from "../protocol/codec.ts";
import type { Subjects } from "../protocol/subjects.ts";
import {
  type ListedTask,
  type TaskSort,
  type TasksResponse,
  tasksQuerySchema,
  tasksResponseSchema,
} from "../protocol/task-list-schemas.ts";
import type { Asker, AskOptions } from "./asker.ts";
import { backoffMs } from "./backoff.ts";
import { errorFrom } from "./coded-error.ts";
import { checkProject } from "./task-request.ts";

export type TaskStateName = ListedTask["state"];

/** Which tasks: every condition that is given must hold; of a list, one. Live tasks, and ended ones within the
 *  horizon. */
export interface TaskFilterOptions {
  readonly state?: TaskStateName | readonly TaskStateName[];
  readonly kind?: string | readonly string[];
  /** Default: all projects. */
  readonly project?: string;
  readonly user?: string | readonly string[];
  /** Of the last attempt. */
  readonly agent?: string | readonly string[];
  /** Since the task ended, or, while it lives, since its round began; ms. */
  readonly olderThanMs?: number;
}

export interface TaskListOptions extends TaskFilterOptions, AskOptions {
  /** `newest` (default): live tasks first, running before waiting. `submitted`: in order of submission. */
  readonly sort?: TaskSort;
  /** Tasks in a page, from 1 to `limits.tasksPageMax`, 1,024. Default 50. */
  readonly limit?: number;
  /** `next` of the page before, of the same filter and order. */
  readonly after?: string;
  /** Take a leader's answer only, and wait for a leader within `timeoutMs`. Default false: a standby may answer from
   *  what it has read so far, with `stale: true`. */
  readonly fresh?: boolean;
}

/** Tasks as they were when they were looked at, which is not one moment for all. */
export type TaskPage = TasksResponse;

export interface TaskListsDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  readonly clock: Clock;
  readonly random: Random;
}

export class TaskLists {
  readonly #asker: Asker;
  readonly #subjects: Subjects;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor({ asker, subjects, clock, random }: TaskListsDeps) {
    this.#asker = asker;
    this.#subjects = subjects;
    this.#clock = clock;
    this.#random = random;
  }

  async page(options: TaskListOptions): Promise<TaskPage> {
    if (!isObject(options))
      throw new InvalidMessageError('tasks: its options must be an object, as { state: "failed" }');
    const unknown = unknownOption(options, optionNames);
    if (unknown !== undefined)
      throw new InvalidMessageError(`tasks: ${unknown.message}`, { field: unknown.name });
    const { project, state, kind, user, agent, olderThanMs, sort, limit, after, fresh, timeoutMs, signal } =
      options;
    const given = { states: listOf(state), kinds: listOf(kind), users: listOf(user), agents: listOf(agent) };
    const message = { v: 1, ...given, olderThanMs, sort, limit, after };
    const checked = check(JSON.parse(JSON.stringify(message, refuseNaN)), tasksQuerySchema);
    if (!checked.ok) throw errorFrom({ ...checked, message: asSaid(checked.message) });
    const subject = this.#subjects.query(project === undefined ? NO_PROJECT : checkProject(project), "tasks");
    if (fresh !== undefined && typeof fresh !== "boolean")
      throw new InvalidMessageError(`fresh: must be true or false, not ${String(fresh)}`, { field: "fresh" });
    const giveUpAtMs = this.#clock.monotonicMs() + (timeoutMs ?? limits.askTimeoutMs);
    for (let failures = 1; ; failures += 1) {
      const page = await this.#asker.ask(
        { kind: "query", subject, message, schema: tasksResponseSchema },
        {
          timeoutMs: Math.max(1, giveUpAtMs - this.#clock.monotonicMs()),
          ...(signal === undefined ? {} : { signal }),
        },
      );
      if (fresh !== true || page.stale !== true) return page;
      const waitMs = backoffMs(failures, this.#random.next());
      if (this.#clock.monotonicMs() + waitMs >= giveUpAtMs)
        throw new NoLeaderError("No leader answers, and a standby's list of tasks may be outdated");
      await pause(this.#clock, waitMs, signal);
      signal?.throwIfAborted();
    }
  }

  /** All that the filter takes, page by page. */
  async *all(options: TaskListOptions): AsyncGenerator<ListedTask> {
    for (let after = options.after; ; ) {
      const page = await this.page({
        limit: limits.tasksPageMax,
        ...options,
        ...(after === undefined ? {} : { after }),
      });
      yield* page.tasks;
      if (page.next === undefined) return;
      after = page.next;
    }
  }
}

function listOf(names: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof names === "string" ? [names] : names;
}

/** JSON has no NaN: the coordinator would read null. */
function refuseNaN(field: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new InvalidMessageError(`${field}: must be a number, not ${value}`, { field });
}

const asNamed: Readonly<Record<string, string>> = {
  states: "state",
  kinds: "kind",
  users: "user",
  agents: "agent",
};

/** The wire's lists are named in the plural. */
function asSaid(message: string): string {
  return message.replace(/^(states|kinds|users|agents)\b/, (name) => asNamed[name] ?? name);
}

const asMeant = {
  states: "state",
  kinds: "kind",
  users: "user",
  agents: "agent",
  olderThan: "olderThanMs",
} as const;

/** The conditions of a filter, and names that are taken for them. */
export const filterNames = {
  known: ["state", "kind", "project", "user", "agent", "olderThanMs"] satisfies (keyof TaskFilterOptions)[],
  otherwise: asMeant,
};

const optionNames = {
  known: [
    ...filterNames.known,
    "sort",
    "limit",
    "after",
    "fresh",
    "timeoutMs",
    "signal",
  ] satisfies (keyof TaskListOptions)[],
  otherwise: { ...asMeant, cursor: "after" },
};
