// One task on its way to being accepted: what is known of it, and the promise of whoever submitted it.
// Not here: when it is sent (submit-queue.ts). The one thing to know: once a message that held it got no
// answer, only a definite answer to a later one may call it refused.

import type { Aborts } from "../abort.ts";
import { BackpressureError, NoLeaderError, type WaggleError } from "../errors.ts";
import { noLeader, outcomeUnknown } from "./asker.ts";
import type { HeldBack } from "./backpressure.ts";
import type { PreparedTask } from "./task-request.ts";
import type { SubmitWarning } from "./task-warnings.ts";

/** That a task was accepted: from here on it always ends, once. */
export interface SubmitAck {
  readonly taskId: string;
  /** Where the journal stood: whoever knows this can tell if it is ever lost. */
  readonly term: number;
  readonly idx: number;
  /** The same id and content was accepted before. */
  readonly duplicate: boolean;
  readonly warnings: readonly SubmitWarning[];
}

export interface SubmissionOptions {
  /** On the monotonic clock. */
  readonly giveUpAtMs: number;
  /** Wait and try again when there is no room. */
  readonly retry: boolean;
  /** Counts the tasks for which there is no room. */
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

  /** Whoever submitted it has been told. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  sent(): void {
    this.#isInFlight = true;
    this.#wasSent = true;
  }

  /** The message that held it reached nobody. */
  notDelivered(): void {
    this.#isInFlight = false;
  }

  /** The message that held it may have been acted upon. */
  doubted(why: string): void {
    this.#isInFlight = false;
    this.#doubt = why;
  }

  /** The leader has no room for it at present. @param isKnownNew it looked whether it has the task already, and has
   *  not: that settles the doubt of earlier attempts */
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

  /** Ends the attempts with what is known: never with "no" where it may have been "yes". */
  giveUp(cause?: unknown): void {
    this.refuse(this.#standing(cause));
  }

  #standing(cause: unknown): unknown {
    const options = cause === undefined ? {} : { cause };
    if (this.#doubt !== undefined) return outcomeUnknown(this.#about(this.#doubt), options);
    if (this.#isInFlight) return outcomeUnknown(this.#about("its answer was not waited for"), options);
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

/** Nobody can say whether somebody leads: what is not answered may be on its way to a leader. */
function notSent(task: string): NoLeaderError {
  const why = "what was sent before it is not answered, or it was given no time";
  return new NoLeaderError(`Task ${task} was not sent: ${why}. Nothing was done`);
}
