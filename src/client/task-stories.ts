// Everything a client can learn about one task: its status, its story, why it waits, and why each attempt went
// to its agent. Two sources: the present state of a coordinator, and the journal, read page by page.

import * as z from "zod";
import { callback, readerOf } from "../agent/options.ts";
import type { ReplayedAssignment } from "../audit/assignment-replay.ts";
import { StoryFold, type StoryLine } from "../audit/story.ts";
import { AuditTrimmedError, InvalidValueError, WaggleError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import type { JournalReader } from "../journal/journal.ts";
import {
  type ExplainedTask,
  explainResponseSchema,
  type SlotWaits,
  slotWaitsResponseSchema,
} from "../protocol/explain-schemas.ts";
import { agentIdSchema, type TaskStatus, taskStatusSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";
import { readBatches } from "./event-feed.ts";
import { type EventSourceDeps, journaledIn } from "./event-source.ts";
import type { JournalBatch } from "./journal-pages.ts";
import { projectName } from "./task-request.ts";

export type AcceptedTaskStatus = TaskStatus & { readonly ok: true };

/** The status of a task, and its history. */
export type TaskStory = StoryLine & { readonly status: AcceptedTaskStatus };

/** Why a task waits (`waiting`, while queued or delayed), and its attempts with the receipts of their
 *  assignments. `idx` and `at` name the moment of the whole answer. */
export type TaskExplanation = Omit<ExplainedTask, "ok" | "attempts" | "endedAt"> &
  Pick<StoryLine, "attempts" | "waits" | "endedAt" | "deadLetterReason"> & {
    /** Number of attempts, including attempts whose record is no longer kept. */
    readonly attemptCount: number;
    /** Batches of this task's events that are not as they were written; absent if there are none. */
    readonly changedBatches?: readonly number[];
  };

/** Options of a question about one task. */
export interface TaskOptions extends AskOptions {
  /** Project of the task. Default: the only project with a task of the id. */
  readonly project?: string;
}

export interface ReplayOptions extends TaskOptions {
  /** Number of the attempt, from 1. Default: the last attempt. */
  readonly attempt?: number;
  /** Called after each replayed batch, with its index and the index of the last batch that may be needed. */
  readonly onProgress?: (progress: { readonly idx: number; readonly lastIdx: number }) => void;
}

const taskRules = {
  each: { ...askRules.each, project: projectName },
  otherwise: askRules.otherwise,
  example: '{ project: "red" }',
};

/** @throws InvalidMessageError naming the option */
export const readTaskOptions = readerOf<TaskOptions>(taskRules);

const readReplayOptions = readerOf<ReplayOptions>({
  each: {
    ...taskRules.each,
    attempt: z.number(),
    onProgress: callback<NonNullable<ReplayOptions["onProgress"]>>(),
  },
  otherwise: askRules.otherwise,
  example: "{ attempt: 1 }",
});

/** Which requests for slots to explain. */
export interface SlotWaitOptions extends AskOptions {
  /** Id of an agent: only the requests up to the last one of this agent. Default: all waiting requests. */
  readonly agent?: string;
  /** Handle of a request of that agent: only the requests up to this one. */
  readonly handle?: string;
}

/** @throws InvalidMessageError naming the option */
export const readSlotWaitOptions = readerOf<SlotWaitOptions>({
  each: { ...askRules.each, agent: agentIdSchema, handle: z.string() },
  otherwise: askRules.otherwise,
  example: '{ agent: "a1" }',
});

/** Opens the swarm's journal to read it without a coordinator; the caller closes it.
 *  @throws WaggleError if this program has no access to the journal */
export type OpenJournal = (signal?: AbortSignal) => Promise<JournalReader>;

export interface TaskStoriesDeps extends EventSourceDeps {
  readonly asker: Asker;
  readonly subjects: Subjects;
  /** Undefined: only coordinators read the journal. */
  readonly openJournal?: OpenJournal | undefined;
}

export class TaskStories {
  readonly #deps: TaskStoriesDeps;

  constructor(deps: TaskStoriesDeps) {
    this.#deps = deps;
  }

  async status(
    task: string,
    { project = NO_PROJECT, ...options }: TaskOptions = {},
  ): Promise<AcceptedTaskStatus> {
    const { asker, subjects } = this.#deps;
    const subject = subjects.query(project, "task");
    const question = { kind: "query", subject, message: { v: 1, task }, schema: taskStatusSchema } as const;
    const status = await asker.ask(question, options);
    if (!status.ok) throw errorFrom(status);
    return status;
  }

  async story(id: string, options: TaskOptions = {}): Promise<TaskStory> {
    const status = await this.status(id, options);
    return { ...(await this.#line(status, options)), status };
  }

  async explain(
    id: string,
    { project = NO_PROJECT, ...options }: TaskOptions = {},
  ): Promise<TaskExplanation> {
    const { asker, subjects } = this.#deps;
    const subject = subjects.query(project, "explain");
    const message = { v: 1, task: id };
    const question = { kind: "query", subject, message, schema: explainResponseSchema } as const;
    const answer = await asker.ask(question, options);
    if (!answer.ok) throw errorFrom(answer);
    const { ok: _, attempts: attemptCount, endedAt: statusEndedAt, ...explained } = answer;
    const line = await this.#line(answer, options, answer.idx);
    const { attempts, waits, endedAt = statusEndedAt, deadLetterReason } = line;
    const changedBatches = changedBatchesOf(line);
    return {
      ...explained,
      attemptCount,
      attempts,
      waits,
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(deadLetterReason === undefined ? {} : { deadLetterReason }),
      ...(changedBatches.length === 0 ? {} : { changedBatches }),
    };
  }

  async slotWaits(resource: string, { agent, handle, ...options }: SlotWaitOptions = {}): Promise<SlotWaits> {
    const { asker, subjects } = this.#deps;
    if (handle !== undefined && agent === undefined)
      throw new InvalidValueError("handle: handles belong to agents: name the agent, too", {
        field: "agent",
      });
    const subject = subjects.query(NO_PROJECT, "slots");
    const message = { v: 1, resource, agent, handle };
    const question = { kind: "query", subject, message, schema: slotWaitsResponseSchema } as const;
    const answer = await asker.ask(question, options);
    if (!answer.ok) throw errorFrom(answer);
    const { ok: _, ...waits } = answer;
    return waits;
  }

  /** @throws AuditTrimmedError when no state from before the assignment can be had */
  async replayAssignment(id: string, given?: ReplayOptions): Promise<ReplayedAssignment> {
    const options = readReplayOptions("replayAssignment", given);
    const status = await this.status(id, options);
    const { attempt = status.attempts } = options;
    if (!Number.isInteger(attempt) || attempt < 1 || attempt > status.attempts)
      throw new InvalidValueError(noSuchAttempt(status, attempt), { field: "attempt" });
    try {
      const sought = { status, attempt };
      const found =
        (await this.#replayedFromBase(sought, options)) ?? (await this.#replayedFromStart(sought, options));
      if (found !== undefined) return found;
    } catch (cause) {
      if (!(cause instanceof AuditTrimmedError)) throw cause;
      const { firstIdx } = cause;
      throw new AuditTrimmedError(cannotReplay(status, firstIdx), { firstIdx, cause });
    }
    throw new InvalidValueError(noSuchAttempt(status, attempt), { field: "attempt" });
  }

  /** From the journal itself. Undefined without access to the journal, or without a record of the attempt. */
  async #replayedFromBase(
    { status, attempt }: SoughtAttempt,
    options: ReplayOptions,
  ): Promise<ReplayedAssignment | undefined> {
    const { clock, openJournal, closed, aborts } = this.#deps;
    if (openJournal === undefined) return undefined;
    const { attempts } = await this.#line(status, options);
    const idx = attempts.find((each) => each.attempt === attempt)?.assignedIdx;
    if (idx === undefined) return undefined;
    const ended = aborts.linkedTo(options.signal, closed);
    const { signal } = ended;
    try {
      const journal = await openJournal(signal).catch((error: unknown) => {
        signal.throwIfAborted();
        if (error instanceof WaggleError) return undefined; // the coordinators' pages remain
        throw error;
      });
      if (journal === undefined) return undefined;
      try {
        // Loaded at the first replay, as below: the scheduler and the journal are a third of what a client loads.
        const { pastAssignment } = await import("../audit/past-assignment.ts");
        const onBatch = (at: number) => options.onProgress?.({ idx: at, lastIdx: idx });
        const { project, task } = status;
        return await pastAssignment({ journal, clock }, { project, task, attempt, idx, onBatch, signal });
      } finally {
        await journal.close();
      }
    } finally {
      ended.abort();
    }
  }

  /** From the pages of coordinators, which begin at the journal's first batch. */
  async #replayedFromStart(
    { status, attempt }: SoughtAttempt,
    options: ReplayOptions,
  ): Promise<ReplayedAssignment | undefined> {
    const lastIdx = status.endedIdx ?? status.idx;
    const { AssignmentReplay } = await import("../audit/assignment-replay.ts");
    const replay = new AssignmentReplay(status, attempt);
    for await (const batch of this.#batches(NO_PROJECT, { from: 1, knownIdx: lastIdx }, options)) {
      const found = replay.take(batch);
      options.onProgress?.({ idx: batch.idx, lastIdx });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Covers the part of the journal that is kept. @param lastIdx events of later batches are left out */
  async #line(task: Placed, options: AskOptions, lastIdx = Number.POSITIVE_INFINITY): Promise<StoryLine> {
    const { submittedIdx, endedIdx } = task;
    try {
      return await this.#lineFrom(task, submittedIdx, options, lastIdx);
    } catch (error) {
      if (!(error instanceof AuditTrimmedError)) throw error;
      const isGone = endedIdx !== undefined && endedIdx < error.firstIdx;
      return isGone ? new StoryFold(task).line : await this.#lineFrom(task, error.firstIdx, options, lastIdx);
    }
  }

  async #lineFrom(task: Placed, from: number, options: AskOptions, lastIdx: number): Promise<StoryLine> {
    const fold = new StoryFold(task);
    const start = { from, knownIdx: task.idx };
    for await (const batch of this.#batches(task.project, start, options)) {
      if (batch.idx > lastIdx) break;
      for (const journaled of journaledIn(batch)) fold.add(journaled);
      if ((fold.isOver && (fold.line.round ?? 1) >= task.round) || batch.idx === lastIdx) break;
    }
    return fold.line;
  }

  /** Reads up to the present. @throws the reason of the signal, or the closing of the connection */
  async *#batches(
    project: string,
    { from, knownIdx }: { readonly from: number; readonly knownIdx: number },
    { signal }: AskOptions,
  ): AsyncGenerator<JournalBatch> {
    const { aborts, closed } = this.#deps;
    const ended = aborts.linkedTo(signal, closed);
    try {
      const reading = {
        project,
        start: { from },
        knownIdx,
        contents: true,
        follow: false,
        signal: ended.signal,
      };
      yield* readBatches(this.#deps, reading);
      signal?.throwIfAborted();
      closed.throwIfAborted();
    } finally {
      ended.abort();
    }
  }
}

/** Batches of a task's events that are not as they were written, ascending. */
export function changedBatchesOf({ events }: StoryLine): readonly number[] {
  return [...new Set(events.filter(({ isChanged }) => isChanged).map(({ idx }) => idx))];
}

interface SoughtAttempt {
  readonly status: AcceptedTaskStatus;
  readonly attempt: number;
}

/** The place of a task, from its status. */
type Placed = Pick<AcceptedTaskStatus, "project" | "task" | "submittedIdx" | "endedIdx" | "round" | "idx">;

function cannotReplay({ task, endedIdx }: AcceptedTaskStatus, firstIdx: number): string {
  const isGone = endedIdx !== undefined && endedIdx < firstIdx;
  const left = isGone ? "the task's record is no longer kept either" : "only its receipt may be left";
  const remedy = `\`waggle explain ${task} --journal FILE\` reads an earlier \`waggle export\``;
  return `no state from before the assignment can be read, and the journal begins at batch ${firstIdx}: ${left}. ${remedy}`;
}

function noSuchAttempt({ task, attempts, endedIdx }: AcceptedTaskStatus, attempt: number): string {
  if (attempts === 0 && endedIdx !== undefined)
    return `attempt: task ${task} ended without an attempt: the task was never assigned`;
  if (attempts === 0) return `attempt: task ${task} has had no attempt yet`;
  const had = `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
  return `attempt: task ${task} has had ${had}, but no attempt ${attempt}`;
}
