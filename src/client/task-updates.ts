// Updates of a task for its handle: the events of the journal, with progress reports in between. The journal's
// order prevents gaps and duplicates across leaders. Progress is passed on as it comes. The last update is the
// outcome.

import { Observable } from "rxjs";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { StoryFold } from "../audit/story.ts";
import { UnauthorizedError } from "../errors.ts";
import type { Outcome, ProgressPush } from "../protocol/schemas.ts";
import type { Event, FailureClass } from "../state/event.ts";
import type { Receipt } from "../state/receipt.ts";
import type { AwaitedTask } from "./awaited-task.ts";
import type { TaskInbox } from "./task-inbox.ts";

interface Placed {
  /** Journal time, ms since the Unix epoch. */
  readonly at: number;
  /** Index of the batch with the event. */
  readonly idx: number;
}

interface OfAttempt {
  /** From 1. */
  readonly attempt: number;
  readonly agent: string;
}

export type TaskUpdate =
  | ({ readonly type: "submitted" } & Placed)
  /** A retry opened a new round. `round`: from 2. */
  | ({ readonly type: "retried"; readonly round: number } & Placed)
  | ({ readonly type: "assigned"; readonly receipt: Receipt } & OfAttempt & Placed)
  /** The assignment has reached the agent. */
  | ({ readonly type: "running" } & OfAttempt & Placed)
  | ({ readonly type: "progress"; readonly fraction?: number; readonly message?: string } & OfAttempt)
  /** The task goes on: at once, or from `retryAt`, ms since the Unix epoch. */
  | ({
      readonly type: "attempt-failed";
      readonly class: FailureClass;
      readonly error: string;
      readonly retryAt?: number;
    } & OfAttempt &
      Placed)
  | { readonly type: "ended"; readonly outcome: Outcome };

interface NamedTask {
  readonly project: string;
  readonly task: string;
}

export interface TaskUpdatesDeps {
  readonly progress: TaskInbox<ProgressPush>;
  /** The batch of the submission, and the present round. @throws WaggleError */
  begun(signal: AbortSignal): Promise<{ readonly submittedIdx: number; readonly round: number }>;
  follow(from: number, signal: AbortSignal): AsyncIterable<JournaledEvent<Event>>;
  /** Asks a leader to notify of the outcome. */
  watch(): AwaitedTask;
  /** Ends the interest in the task that `watch` returned. */
  abandon(awaited: AwaitedTask): void;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
}

/** Cold: each subscriber sees all updates since the submission. Errors when the journal cannot be read or the
 *  task is lost, never because the task failed. Completes without an outcome when the connection is closed. */
export function taskUpdates(task: NamedTask, deps: TaskUpdatesDeps): Observable<TaskUpdate> {
  return new Observable((subscriber) => {
    const ended = new AbortController();
    const awaited = deps.watch();
    // Progress bypasses the journal. The newest report waits until the journal shows the assignment of its
    // attempt.
    let shownAttempt = 0;
    let early: (TaskUpdate & OfAttempt & { readonly type: "progress" }) | undefined;
    const stopProgress = deps.progress.watch(task, ({ project: _, task: __, ...progress }) => {
      const update = { type: "progress", ...progress } as NonNullable<typeof early>;
      if (update.attempt > shownAttempt) early = update;
      else if (update.attempt === shownAttempt) subscriber.next(update);
    });
    const show = (update: TaskUpdate) => {
      subscriber.next(update);
      if (update.type !== "assigned") return;
      shownAttempt = update.attempt;
      if (early?.attempt === shownAttempt) subscriber.next(early);
      if (early !== undefined && early.attempt <= shownAttempt) early = undefined;
    };
    const stopAwaiting = awaited.onEnd((end) => {
      if (end.kind !== "failed") return;
      if (deps.closed.aborted && !(end.error instanceof UnauthorizedError)) subscriber.complete();
      else subscriber.error(end.error);
    });
    let stopFinishing = (): void => undefined;
    const pump = async () => {
      for await (const update of readUpdates(task, deps, ended.signal)) show(update);
      if (!ended.signal.aborted) stopFinishing = awaited.onEnd((end) => finish(subscriber, end));
    };
    pump().catch((error: unknown) => subscriber.error(error));
    return () => {
      ended.abort();
      stopProgress();
      stopAwaiting();
      stopFinishing();
      deps.abandon(awaited);
    };
  });
}

function finish(
  subscriber: { next(update: TaskUpdate): void; complete(): void },
  end: AwaitedTask["awaited"],
): void {
  if (end?.kind !== "ended") return; // the error was passed on already
  subscriber.next({ type: "ended", outcome: end.outcome });
  subscriber.complete();
}

/** Ends when the task has ended in its present round or a later round, or with `signal`. */
async function* readUpdates(
  task: NamedTask,
  deps: TaskUpdatesDeps,
  signal: AbortSignal,
): AsyncGenerator<TaskUpdate> {
  const fold = new StoryFold(task);
  const { submittedIdx, round } = await deps.begun(signal);
  for await (const journaled of deps.follow(submittedIdx, signal)) {
    const before = fold.line;
    fold.add(journaled);
    if (fold.line === before) continue;
    const update = updateFrom(journaled, fold);
    if (update !== undefined) yield update;
    if (fold.line.endedAt !== undefined && (fold.line.round ?? 1) >= round) return;
  }
}

function updateFrom({ event, at, idx }: JournaledEvent<Event>, fold: StoryFold): TaskUpdate | undefined {
  switch (event.type) {
    case "TaskSubmitted":
      return { type: "submitted", at, idx };
    case "TaskRetried":
      return { type: "retried", round: event.round, at, idx };
    case "TaskAssigned":
      return {
        type: "assigned",
        attempt: event.attempt,
        agent: event.agent,
        receipt: event.receipt,
        at,
        idx,
      };
    case "AssignmentsConfirmed":
      return {
        type: "running",
        attempt: fold.line.attempts.at(-1)?.attempt ?? 0,
        agent: event.agent,
        at,
        idx,
      };
    case "AttemptFailed": {
      const { attempt, agent, failure, retryAt } = event;
      const place = { attempt, agent, at, idx, ...(retryAt === undefined ? {} : { retryAt }) };
      return { type: "attempt-failed", class: failure.class, error: failure.error, ...place };
    }
    default:
      return undefined;
  }
}
