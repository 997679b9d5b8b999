// One task on its way to acceptance: its state, and the promise of its submitter. submit-queue.ts decides when
// to send. After a message got no answer, only a definite answer to a later message may refuse its tasks.

import { BackpressureError, NoLeaderError, type WaggleError } from "../errors.ts";
import { noLeader, outcomeUnknown } from "./asker.ts";
import type { AwaitedTask } from "./awaited-task.ts";
import type { HeldBack } from "./backpressure.ts";
import type { Acceptance } from "./submit-ack.ts";
import type { TaskHandle } from "./task-handle.ts";
import type { PreparedTask } from "./task-request.ts";

/** Shared by all submissions of a call, or of a connection. */
export interface SubmissionTerms {
  /** Try again after BackpressureError, instead of failing. */
  readonly retry: boolean;
  /** Counts the tasks that a full queue holds back. */
  readonly heldBack: HeldBack;
  readonly signal: AbortSignal | undefined;
}

/** Shared by all submissions of a connection. */
export interface SubmissionOwner {
  /** The handle for the submitter. */
  accepted(submission: Submission, acceptance: Acceptance): TaskHandle;
  notAccepted(submission: Submission): void;
  /** Calls `run` once when `signal` aborts. Returns a function to cancel the call. */
  onAbort(signal: AbortSignal, run: () => void): () => void;
}

export class Submission {
  readonly task: PreparedTask;
  /** Deadline on the monotonic clock. */
  readonly giveUpAtMs: number;
  /** The wait for the outcome, if the leader is to notify. */
  readonly awaited: AwaitedTask | undefined;
  readonly handle: Promise<TaskHandle>;
  readonly #terms: SubmissionTerms;
  readonly #owner: SubmissionOwner;
  #resolve!: (handle: TaskHandle) => void;
  #reject!: (error: unknown) => void;
  readonly #stopWatching: (() => void) | undefined;
  #isSettled = false;
  #isInFlight = false;
  #wasSent = false;
  #doubt: string | undefined;
  #refusal: WaggleError | undefined;
  #isHeldBack = false;

  constructor(
    { task, awaited, giveUpAtMs }: Pick<Submission, "task" | "awaited" | "giveUpAtMs">,
    terms: SubmissionTerms,
    owner: SubmissionOwner,
  ) {
    this.task = task;
    this.giveUpAtMs = giveUpAtMs;
    this.awaited = awaited;
    this.#terms = terms;
    this.#owner = owner;
    this.handle = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal } = terms;
    this.#stopWatching =
      signal === undefined ? undefined : owner.onAbort(signal, () => this.giveUp(signal.reason));
  }

  /** Tried again after BackpressureError. */
  get retry(): boolean {
    return this.#terms.retry;
  }

  /** The promise of the submitter is settled. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  sent(): void {
    this.#isInFlight = true;
    this.#wasSent = true;
  }

  /** No leader received the message with the task. */
  notDelivered(): void {
    this.#isInFlight = false;
  }

  /** A leader may have acted upon the message with the task. */
  doubted(why: string): void {
    this.#isInFlight = false;
    this.#doubt = why;
  }

  /** The leader has no room for the task at present. @param isKnownNew the leader looked up the task and does
   *  not have it, which settles the doubt of earlier attempts */
  turnedAway(refusal: WaggleError, isKnownNew: boolean): void {
    this.#isInFlight = false;
    if (isKnownNew) this.#doubt = undefined;
    this.#refusal = refusal;
    if (!(refusal instanceof BackpressureError)) return;
    this.#terms.heldBack.turnedAway(refusal, !this.#isHeldBack);
    this.#isHeldBack = true;
  }

  accept(acceptance: Acceptance): void {
    if (!this.#settle()) return;
    try {
      this.#resolve(this.#owner.accepted(this, acceptance));
    } catch (error) {
      this.#reject(error); // the caller's logger threw
    }
  }

  refuse(error: unknown): void {
    if (!this.#settle()) return;
    this.#owner.notAccepted(this);
    this.#reject(error);
  }

  /** Ends the attempts with the known state. Never reports a refusal when the task may have been accepted. */
  giveUp(cause?: unknown): void {
    this.refuse(this.#standing(cause));
  }

  #standing(cause: unknown): unknown {
    const options = cause === undefined ? {} : { cause };
    if (this.#doubt !== undefined) return outcomeUnknown(this.#about(this.#doubt), options);
    if (this.#isInFlight) return outcomeUnknown(this.#about("the wait ended before the answer"), options);
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#wasSent) return noLeader(options);
    return cause ?? notSent(this.task.id);
  }

  #about(why: string): string {
    return `task ${this.task.id}: ${why}`;
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#stopWatching?.();
    if (this.#isHeldBack) this.#terms.heldBack.letGo();
    return true;
  }
}

/** Whether a leader exists is unknown: earlier messages without an answer may have reached a leader. */
function notSent(task: string): NoLeaderError {
  const why = "earlier messages have no answer yet, or the time was too short";
  return new NoLeaderError(`Task ${task} was not sent: ${why}. Nothing was done`);
}
