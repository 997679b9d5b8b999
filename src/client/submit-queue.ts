// Tasks that may share a message: same project, same terms. Sends several messages at a time, and queues
// unanswered tasks again. Owned by submitter.ts, which gives the overview.

import type { Clock, Random } from "../clock.ts";
import type { WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { isPlainSubmitResponse } from "../protocol/quick-checks.ts";
import { type CodedError, type SubmitAnswer, submitResponseSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { pauseAfter } from "../retry-paused.ts";
import type { Transport } from "../transport/transport.ts";
import { askPace } from "./ask-pace.ts";
import type { Answer, Asker, Question } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";
import type { Submission } from "./submission.ts";
import type { Acceptance } from "./submit-ack.ts";
import type { SubmitWarning } from "./task-warnings.ts";

export interface SubmitQueueDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly asker: Asker;
  readonly clock: Clock;
  readonly random: Random;
}

/** Properties that all tasks of a message share. */
export interface QueueTerms extends DeliveryTerms {
  readonly project: string;
}

export interface DeliveryTerms {
  /** Inbox to which the leader pushes outcomes; undefined: no notification. */
  readonly notify: string | undefined;
  /** Refuse tasks whose kind no agent serves. */
  readonly failFast: boolean;
}

/** Tasks that fit a message, and the message. */
interface Outgoing {
  readonly submissions: readonly Submission[];
  readonly bytes: Uint8Array;
}

type MessageAnswer = Answer<JournalPoint & { readonly answers: readonly SubmitAnswer[] }>;

export class SubmitQueue {
  readonly #terms: QueueTerms;
  readonly #deps: SubmitQueueDeps;
  readonly #question: Question<typeof submitResponseSchema>;
  /** The message up to its tasks. */
  readonly #head: string;
  readonly #onIdle: () => void;
  #queue: readonly Submission[] = [];
  #arrived: Submission[] = [];
  readonly #inFlight = new Set<readonly Submission[]>();
  /** Number of times that a new leader began. */
  #newLeaders = 0;
  /** Refused groups that wait for their next attempt, with a function that cancels the wait. */
  readonly #turnedAway = new Map<readonly Submission[], () => void>();
  #failures = 0;
  #cancelPause: (() => void) | undefined;
  /** Timer for the earliest deadline: a task may wait behind, or in, a message that gets no answer. */
  #givingUp: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #isScheduled = false;
  #isClosed = false;

  constructor(deps: SubmitQueueDeps, terms: QueueTerms, onIdle: () => void) {
    this.#deps = deps;
    this.#question = {
      kind: "command",
      subject: deps.subjects.project(terms.project, "submit"),
      schema: submitResponseSchema,
      isRight: isPlainSubmitResponse,
    };
    this.#head = headOf(terms);
    this.#terms = terms;
    this.#onIdle = onIdle;
  }

  isFor(project: string, { notify, failFast }: DeliveryTerms): boolean {
    const own = this.#terms;
    return own.project === project && own.notify === notify && own.failFast === failFast;
  }

  add(submission: Submission): void {
    this.#arrived.push(submission);
    this.#giveUpAt(submission.giveUpAtMs);
    this.#schedule();
  }

  /** A new leader begins. Requests without an answer, which the asker ends, are repeated at once. Tasks that
   *  wait because no leader was present are sent at once. */
  hurry(): void {
    this.#newLeaders += 1;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    this.#failures = 0;
    this.#schedule();
  }

  close(cause: WaggleError): void {
    this.#isClosed = true;
    this.#cancelPause?.();
    this.#givingUp?.cancel();
    for (const cancel of this.#turnedAway.values()) cancel();
    const groups = [this.#takeQueue(), ...this.#inFlight, ...this.#turnedAway.keys()];
    this.#turnedAway.clear();
    for (const submission of groups.flat()) submission.giveUp(cause);
  }

  /** Sends after all present callbacks have run, so that calls made together share a message. */
  #schedule(): void {
    if (this.#isIdle) return this.#rest();
    if (this.#isScheduled || this.#cancelPause !== undefined) return;
    this.#isScheduled = true;
    this.#deps.clock.soon(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#isClosed) return;
    while (this.#cancelPause === undefined && this.#inFlight.size < limits.submitMessagesInFlightMax) {
      const message = this.#takeMessage();
      if (message === undefined) break;
      void this.#exchange(message);
    }
    this.restIfIdle();
  }

  /** Tells the owner again that nothing waits here. */
  restIfIdle(): void {
    if (this.#isIdle) this.#rest();
  }

  get #isIdle(): boolean {
    return this.#queue.length + this.#arrived.length + this.#inFlight.size + this.#turnedAway.size === 0;
  }

  /** Without the timer, which would keep the process alive. */
  #rest(): void {
    this.#givingUp?.cancel();
    this.#givingUp = undefined;
    this.#onIdle();
  }

  #giveUpAt(atMs: number): void {
    if (this.#givingUp !== undefined && this.#givingUp.atMs <= atMs) return;
    this.#givingUp?.cancel();
    const waitMs = atMs - this.#deps.clock.monotonicMs();
    this.#givingUp = { atMs, cancel: this.#deps.clock.after(Math.max(0, waitMs), () => this.#giveUpDue()) };
  }

  /** Fails the submissions whose deadline has passed, and drops unsent submissions among them. */
  #giveUpDue(): void {
    this.#givingUp = undefined;
    const nowMs = this.#deps.clock.monotonicMs();
    this.#queue = this.#takeQueue();
    let next = Number.POSITIVE_INFINITY;
    for (const group of [this.#queue, ...this.#inFlight, ...this.#turnedAway.keys()])
      for (const submission of group) {
        if (submission.isSettled) continue;
        if (submission.giveUpAtMs <= nowMs) submission.giveUp();
        else next = Math.min(next, submission.giveUpAtMs);
      }
    this.#queue = this.#queue.filter(({ isSettled }) => !isSettled);
    // A pass takes time in proportion to the tasks. Deadlines close together share a pass; the interval grows
    // with the number of tasks.
    const pauseMs = Math.max(limits.submitGiveUpMs, this.#queue.length * limits.submitGiveUpMsPerTask);
    if (next < Number.POSITIVE_INFINITY) this.#giveUpAt(Math.max(next, nowMs + pauseMs));
  }

  /** As many tasks as fit, from the front. */
  #takeMessage(): Outgoing | undefined {
    let submissions = this.#takeTasks();
    if (submissions.length === 0) return undefined;
    let bytes = this.#messageOf(submissions);
    while (bytes.length > this.#deps.transport.maxPayloadBytes && submissions.length > 1) {
      const half = Math.ceil(submissions.length / 2);
      this.#queue = [...submissions.slice(half), ...this.#queue];
      submissions = submissions.slice(0, half);
      bytes = this.#messageOf(submissions);
    }
    return { submissions, bytes };
  }

  #messageOf(submissions: readonly Submission[]): Uint8Array {
    const tasks = submissions.map(({ task }) => task.input);
    return Buffer.from(`${this.#head}${JSON.stringify(tasks)}}`);
  }

  /** At least as many tasks as fill half a message, from the front. Settled tasks are left out. */
  #takeTasks(): Submission[] {
    const queue = this.#takeQueue();
    const nowMs = this.#deps.clock.monotonicMs();
    const bytesMax = this.#deps.transport.maxPayloadBytes / 2;
    const tasks: Submission[] = [];
    let bytes = 0;
    let passed = 0;
    for (const submission of queue) {
      if (tasks.length === limits.itemsPerMessageMax) break;
      if (!submission.isSettled && submission.giveUpAtMs <= nowMs) submission.giveUp();
      if (!submission.isSettled) {
        if (tasks.length > 0 && bytes + submission.task.leastBytes > bytesMax) break;
        tasks.push(submission);
        bytes += submission.task.leastBytes;
      }
      passed += 1;
    }
    this.#queue = queue.slice(passed);
    return tasks;
  }

  #takeQueue(): readonly Submission[] {
    const queue = this.#queue.length === 0 ? this.#arrived : [...this.#queue, ...this.#arrived];
    this.#queue = [];
    this.#arrived = [];
    return queue;
  }

  /** Never rejects: all errors end in the promises of the tasks. */
  async #exchange({ submissions, bytes }: Outgoing): Promise<void> {
    this.#inFlight.add(submissions);
    for (const submission of submissions) submission.sent();
    const newLeadersBefore = this.#newLeaders;
    try {
      const answer = await this.#ask(submissions, bytes);
      this.#settle(submissions, answer, this.#newLeaders > newLeadersBefore);
    } catch (error) {
      for (const submission of submissions) submission.refuse(error); // larger than the server's maximum
    }
    this.#inFlight.delete(submissions);
    this.#schedule();
  }

  async #ask(message: readonly Submission[], bytes: Uint8Array): Promise<MessageAnswer> {
    const { asker, clock } = this.#deps;
    const giveUpAtMs = message.reduce((latest, submission) => Math.max(latest, submission.giveUpAtMs), 0);
    const timeoutMs = Math.max(1, Math.min(limits.requestTimeoutMs, giveUpAtMs - clock.monotonicMs()));
    const answer = await asker.once(this.#question, bytes, { timeoutMs });
    if (answer.kind !== "answered" || answer.value.answers.length === message.length) return answer;
    return { kind: "unknown", why: `${message.length} tasks got ${answer.value.answers.length} answers` };
  }

  #settle(message: readonly Submission[], answer: MessageAnswer, isHurried: boolean): void {
    switch (answer.kind) {
      case "answered":
        this.#failures = 0;
        this.#settleEach(message, answer.value, answer.value.answers);
        break;
      case "refused":
        this.#failures = 0;
        this.#settleEach(
          message,
          undefined,
          message.map(() => answer.refusal),
        );
        break;
      case "no-leader":
        for (const submission of message) submission.notDelivered();
        this.#sendAgain(message);
        this.#pause();
        break;
      case "unknown":
        for (const submission of message) submission.doubted(answer.why);
        this.#sendAgain(message);
        if (!isHurried) this.#pause();
    }
  }

  /** @param at the batch up to which the leader's answer holds; undefined when the leader refused the message
   *    unread */
  #settleEach(
    message: readonly Submission[],
    at: JournalPoint | undefined,
    answers: readonly SubmitAnswer[],
  ): void {
    const usual: Acceptance = {
      term: at?.term ?? 0,
      idx: at?.idx ?? 0,
      duplicate: false,
      warnings: NO_WARNINGS,
    };
    const turnedAway: Submission[] = [];
    const undecided: Submission[] = [];
    let retryAfterMs = 0;
    for (const [place, submission] of message.entries()) {
      const answer = answers[place];
      if (answer === undefined) continue;
      if (answer.ok) submission.accept(acceptanceOf(answer, usual));
      else if (isUndecided(answer, submission)) undecided.push(submission);
      else if (answer.code !== "WAGGLE_BACKPRESSURE") submission.refuse(refusalOf(answer));
      else {
        submission.turnedAway(refusalOf(answer), at !== undefined);
        if (!this.#mayWait(answer, submission)) submission.giveUp();
        else {
          turnedAway.push(submission);
          retryAfterMs = Math.max(retryAfterMs, waitOf(answer));
        }
      }
    }
    if (turnedAway.length > 0) this.#sendLater(turnedAway, retryAfterMs);
    if (undecided.length > 0) {
      this.#sendAgain(undecided);
      this.#pause();
    }
  }

  #mayWait(answer: CodedError, submission: Submission): boolean {
    return submission.retry && this.#deps.clock.monotonicMs() + waitOf(answer) < submission.giveUpAtMs;
  }

  #sendAgain(submissions: readonly Submission[]): void {
    if (this.#isClosed) for (const submission of submissions) submission.giveUp();
    else this.#queue = [...submissions, ...this.#queue];
  }

  #sendLater(submissions: readonly Submission[], retryAfterMs: number): void {
    const { clock, random } = this.#deps;
    const cancel = clock.after(retryAfterMs * (1 + random.next() / 2), () => {
      this.#turnedAway.delete(submissions);
      this.#sendAgain(submissions);
      this.#schedule();
    });
    this.#turnedAway.set(submissions, cancel);
  }

  /** Pauses sending. The pause grows with consecutive failures. */
  #pause(): void {
    if (this.#cancelPause !== undefined || this.#isClosed) return;
    this.#failures += 1;
    const pausing = pauseAfter(this.#failures, askPace(this.#deps)).subscribe(() => {
      this.#cancelPause = undefined;
      this.#schedule();
    });
    this.#cancelPause = () => pausing.unsubscribe();
  }
}

function headOf(terms: QueueTerms): string {
  const { notify, failFast } = terms;
  const head = { v: 1, ...(notify === undefined ? {} : { notify }), ...(failFast ? { failFast } : {}) };
  return `${JSON.stringify(head).slice(0, -1)},"tasks":`;
}

const NO_WARNINGS: readonly SubmitWarning[] = [];

function acceptanceOf(
  { duplicate = false, warnings }: SubmitAnswer & { readonly ok: true },
  usual: Acceptance,
): Acceptance {
  if (!duplicate && warnings === undefined) return usual;
  return { ...usual, duplicate, warnings: warnings ?? NO_WARNINGS };
}

function waitOf(refusal: CodedError): number {
  return refusal.retryAfterMs ?? limits.retryAfterMs;
}

const PLACE = /^tasks\[\d+\]\.?/;

/** Removes the position of a task in its message, which means nothing to the submitter. */
function refusalOf({ message, field, ...rest }: CodedError): WaggleError {
  const text = message.replace(PLACE, (place) => (place.endsWith(".") ? "" : "the task"));
  const name = field?.replace(PLACE, "") ?? "";
  return errorFrom({ ...rest, message: text, ...(name === "" ? {} : { field: name }) });
}

/** The leader lost the lead meanwhile: the next leader decides. */
function isUndecided(answer: CodedError, submission: Submission): boolean {
  if (answer.code === "WAGGLE_NO_LEADER") submission.notDelivered();
  else if (answer.code === "WAGGLE_OUTCOME_UNKNOWN") submission.doubted(answer.message);
  else return false;
  return true;
}
