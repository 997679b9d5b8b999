// Lists of tasks, page by page.

import * as z from "zod";
import { flag, readerOf } from "../agent/options.ts";
import type { Clock, Random } from "../clock.ts";
import { NoLeaderError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import { sentenceOf, shown } from "../protocol/sentence.ts";
import type { Subjects } from "../protocol/subjects.ts";
import {
  type ListedTask,
  type TaskSort,
  type TasksResponse,
  tasksQuerySchema,
  tasksResponseSchema,
} from "../protocol/task-list-schemas.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import { projectName } from "./task-request.ts";

export type TaskStateName = ListedTask["state"];

/** Selects tasks: all given conditions must hold, and any value of a list matches. Covers live tasks, and ended
 *  tasks within the horizon. */
export interface TaskFilterOptions {
  readonly state?: TaskStateName | readonly TaskStateName[];
  readonly kind?: string | readonly string[];
  /** Default: all projects. */
  readonly project?: string;
  readonly user?: string | readonly string[];
  /** Agent of the last attempt. */
  readonly agent?: string | readonly string[];
  /** Values that the task's attributes must have. Of ended tasks, the newest keep theirs: some 64 MB together. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Minimum age, ms: time since the task ended or, for a live task, since its round began. */
  readonly olderThanMs?: number;
}

export interface TaskListOptions extends TaskFilterOptions, AskOptions {
  /** `newest` (default): live tasks first, running before waiting. `submitted`: in order of submission. */
  readonly sort?: TaskSort;
  /** Tasks per page, from 1 to `limits.tasksPageMax`, 1,024. Default 50. */
  readonly limit?: number;
  /** `next` of the preceding page, with the same filter and order. */
  readonly after?: string;
  /** Accept only the answer of a leader, and wait for a leader within `timeoutMs`. Default false: a standby may
   *  answer with its older state, marked `stale: true`. */
  readonly fresh?: boolean;
}

/** Tasks as read at different moments, not one snapshot. */
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

  /** @param options as `readTaskListOptions` returns them */
  async page(options: TaskListOptions): Promise<TaskPage> {
    const { project = NO_PROJECT, fresh, timeoutMs, signal, ...wanted } = options;
    const { state: states, kind: kinds, user: users, agent: agents, ...rest } = wanted;
    const message = { v: 1, states, kinds, users, agents, ...rest };
    const subject = this.#subjects.query(project, "tasks");
    const giveUpAtMs = this.#clock.monotonicMs() + (timeoutMs ?? limits.askTimeoutMs);
    const otherwise = () =>
      new NoLeaderError("No leader answers, and a standby's list of tasks may be outdated");
    const attempt = async () => {
      signal?.throwIfAborted();
      const page = await this.#asker.ask(
        { kind: "query", subject, message, schema: tasksResponseSchema },
        {
          timeoutMs: Math.max(1, giveUpAtMs - this.#clock.monotonicMs()),
          ...(signal === undefined ? {} : { signal }),
        },
      );
      if (fresh === true && page.stale === true) throw new TryAgain({ otherwise });
      return page;
    };
    const pace = askPace({ clock: this.#clock, random: this.#random });
    return await retried(attempt, { ...pace, giveUpAtMs, hurry$: abortOf(signal) });
  }

  /** All tasks that match the filter, page by page. */
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

const { shape } = tasksQuerySchema;

/** A name, or several. */
const listed = <Name extends z.ZodType<string>>(list: z.ZodOptional<z.ZodArray<Name>>) =>
  z.unknown().transform((given, context): z.infer<Name>[] => {
    const isOne = typeof given === "string";
    if (!isOne && !Array.isArray(given)) {
      const message = `must be text or a list of texts, not ${shown(given)}`;
      context.issues.push({ code: "custom", input: given, message });
      return z.NEVER;
    }
    const checked = list.unwrap().safeParse(isOne ? [given] : given, { error: sentenceOf });
    if (checked.success) return checked.data;
    for (const { message, path } of checked.error.issues)
      context.issues.push({ code: "custom", input: given, message, path: isOne ? path.slice(1) : path });
    return z.NEVER;
  });

const filterRules = {
  each: {
    state: listed(shape.states),
    kind: listed(shape.kinds),
    project: projectName,
    user: listed(shape.users),
    agent: listed(shape.agents),
    attributes: shape.attributes,
    olderThanMs: shape.olderThanMs,
  },
  otherwise: {
    states: "state",
    kinds: "kind",
    users: "user",
    agents: "agent",
    attribute: "attributes",
    olderThan: "olderThanMs",
  },
  example: '{ state: "failed" }',
};

/** Returns lists, also for a single name. @throws InvalidMessageError naming the condition */
export const readTaskFilter = readerOf<TaskFilterOptions>({ ...filterRules, subject: "the filter" });

/** Returns lists, also for a single name. @throws InvalidMessageError naming the option */
export const readTaskListOptions = readerOf<TaskListOptions>({
  ...filterRules,
  each: {
    ...filterRules.each,
    ...askRules.each,
    sort: shape.sort,
    limit: shape.limit,
    after: shape.after,
    fresh: flag,
  },
  otherwise: { ...filterRules.otherwise, ...askRules.otherwise, cursor: "after" },
});
