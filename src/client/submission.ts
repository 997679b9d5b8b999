// One task on its way to acceptance: its state, and the promise of its submitter. submit-queue.ts decides when
// to send. After a message got no answer, only a definite answer to a later message may refuse its tasks.

import type { Aborts } from "../abort.ts";
import { BackpressureError, NoLeaderError, type WaggleError } from "../errors.ts";
import { noLeader, outcomeUnknown } from "./asker.ts";
import type { HeldBack } from "./backpressure.ts";
import type { PreparedTask } from "./task-request.ts";
import type { SubmitWarning } from "./task-warnings.ts";

/** Acknowledgement of an accepted task. An accepted task ends exactly once. */
export interface SubmitAck {
  readonly taskId: string;
  /** Position of the journal at acceptance. Serves to detect a loss of the task. */
  readonly term: number;
  readonly idx: number;
  /** True when the same id and content was accepted before. */
  readonly duplicate: boolean;
  readonly warnings: readonly SubmitWarning[];
}

export interface SubmissionOptions {
  /** Deadline on the monotonic clock. */
  readonly giveUpAtMs: number;
  /** Try again after BackpressureError. */
  readonly retry: boolean;
  /** Counts the tasks that a full queue holds back. */
  readonly heldBack: HeldBack;
  readonly signal: AbortSignal | undefined;
  readonly aborts: Aborts;
}

export class Submission {
  readonly task: PreparedTask;
  readonly giveUpAtMs: number;
  readonly retry: boolean;
  readonly acked: Promise<SubmitAck>;
  #resolve!: (ack: SubmitAck) => void;
  #reject!: (error: unknown) => void;
  readonly #stopWatching: (() => void) | undefined;
  readonly #heldBack: HeldBack;
  #isSettled = false;
  #isInFlight = false;
  #wasSent = false;
  #doubt: string | undefined;
  #refusal: WaggleError | undefined;
  #isHeldBack = false;

  constructor(task: PreparedTask, options: SubmissionOptions) {
    this.task = task;
    this.giveUpAtMs = options.giveUpAtMs;
    this.#heldBack = options.heldBack;
    this.retry = options.retry;
    this.acked = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal, aborts } = options;
    this.#stopWatching =
      signal === undefined ? undefined : aborts.on(signal, () => this.giveUp(signal.reason));
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
    this.#heldBack.turnedAway(refusal, !this.#isHeldBack);
    this.#isHeldBack = true;
  }

  accept(ack: SubmitAck): void {
    if (this.#settle()) this.#resolve(ack);
  }

  refuse(error: unknown): void {
    if (this.#settle()) this.#reject(error);
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
    if (this.#isHeldBack) this.#heldBack.letGo();
    return true;
  }
}

/** Whether a leader exists is unknown: earlier messages without an answer may have reached a leader. */
function notSent(task: string): NoLeaderError {
  const why = "earlier messages have no answer yet, or the time was too short";
  return new NoLeaderError(`Task ${task} was not sent: ${why}. Nothing was done`);
}
