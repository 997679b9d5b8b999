// A request to the swarm and its answer, repeated until an answer comes. Not here: submitting and awaiting,
// which send many requests and keep their own order (submitter.ts, awaited-tasks.ts). When a new leader begins,
// a pending request is given up and repeated: the old leader may be stopped or cut off. Only `no-leader` proves
// that nothing was done.

import { merge, Observable } from "rxjs";
import type { z } from "zod";
import type { Aborts } from "../abort.ts";
import { abortSignal, type OptionRules, readerOf, waitMs } from "../agent/options.ts";
import { unreachable } from "../assert.ts";
import type { Clock, Random } from "../clock.ts";
import {
  BackpressureError,
  NoLeaderError,
  OutcomeUnknownError,
  UnreachableError,
  UnreadableAnswerError,
} from "../errors.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { check, encode, parseJson } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import type { Horizon } from "../protocol/horizon.ts";
import { isRefusal, type QuickCheck, readQuickly } from "../protocol/quick-checks.ts";
import { type CodedError, codedErrorSchema } from "../protocol/schemas.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { Forbidden, RequestOutcome, Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import { errorFrom } from "./coded-error.ts";

/** Result of a request. */
export type Answer<Value> =
  | { readonly kind: "answered"; readonly value: Value }
  /** The message as a whole was refused: nothing was done. */
  | { readonly kind: "refused"; readonly refusal: CodedError }
  /** No leader received the request: nothing was done. */
  | { readonly kind: "no-leader" }
  /** The request may have taken effect, or may still. `isUnreadable`: an answer came that cannot be read.
   *  `isSilence`: no answer came before the time-out or an abort. */
  | {
      readonly kind: "unknown";
      readonly why: string;
      readonly isUnreadable?: true;
      readonly isSilence?: true;
    };

type Doubt = Answer<never> & { readonly kind: "unknown" };

export interface AskOptions {
  /** Maximum time to keep asking, ms, at least 0; Infinity for no limit. Default `limits.askTimeoutMs`, 30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export const askRules = {
  each: { timeoutMs: waitMs, signal: abortSignal },
  otherwise: { timeout: "timeoutMs" },
  example: "{ timeoutMs: 5000 }",
} satisfies OptionRules<AskOptions>;

/** @throws InvalidMessageError naming the option */
export const readAskOptions = readerOf<AskOptions>(askRules);

/** `command`: a leader changes the state and answers with a position of the journal. `query`: any coordinator
 *  reads the state; a repeat is harmless and an older answer is acceptable. */
export type QuestionKind = "command" | "query";

export interface Question<Schema extends z.ZodType> {
  readonly kind: QuestionKind;
  readonly subject: string;
  /** Schema of the answer. */
  readonly schema: Schema;
  /** Proves most right answers without the schema. */
  readonly isRight?: QuickCheck<z.infer<Schema>>;
}

export interface AskerDeps {
  readonly transport: Transport;
  readonly horizon: Horizon;
  readonly clock: Clock;
  readonly random: Random;
  readonly aborts: Aborts;
  /** Whether this user may ask on a subject. Other requests are refused here, before the server logs a violation.
   *  Absent: the server alone decides. */
  readonly mayAsk?: ((subject: string) => boolean) | undefined;
}

export class Asker {
  readonly #deps: AskerDeps;
  /** Notified when a new leader begins: ends the open requests. */
  readonly #newLeader = new Listeners();
  /** Number of times that a new leader began. */
  #newLeaders = 0;
  /** Ends a pause, so that a new leader is asked at once. */
  readonly #newTerm$ = new Observable<void>((subscriber) =>
    this.#deps.horizon.onTerm(() => subscriber.next()),
  );

  constructor(deps: AskerDeps) {
    this.#deps = deps;
    deps.horizon.onNewLeader(() => {
      this.#newLeaders += 1;
      this.#newLeader.notify();
    });
  }

  /** Asks until an answer comes.
   *  @throws NoLeaderError when no coordinator received any of the requests
   *  @throws OutcomeUnknownError (command) or UnreachableError (query) when an expected answer did not come
   *  @throws UnreadableAnswerError (query) when an answer cannot be read
   *  @throws BackpressureError when all coordinators were too busy to accept the request until the end
   *  @throws WaggleError with the code of the refusal, or the reason of `signal` */
  async ask<Schema extends z.ZodType>(
    question: Question<Schema> & { readonly message: unknown },
    options: AskOptions = {},
  ): Promise<z.infer<Schema>> {
    options.signal?.throwIfAborted();
    const ended = this.#deps.aborts.linkedTo(options.signal);
    try {
      return await this.#askUntilAnswered(question, { ...options, signal: ended.signal });
    } finally {
      ended.abort();
    }
  }

  async #askUntilAnswered<Schema extends z.ZodType>(
    question: Question<Schema> & { readonly message: unknown },
    { timeoutMs: wholeMs = limits.askTimeoutMs, signal }: AskOptions & { readonly signal: AbortSignal },
  ): Promise<z.infer<Schema>> {
    const { clock } = this.#deps;
    const bytes = encode(question.message);
    const giveUpAtMs = clock.monotonicMs() + wholeMs;
    let doubt: Doubt | undefined;
    let wasWithoutLeader = false;

    const attempt = async () => {
      const newLeadersBefore = this.#newLeaders;
      const timeoutMs = Math.max(1, Math.min(limits.requestTimeoutMs, giveUpAtMs - clock.monotonicMs()));
      const answer = await this.once(question, bytes, { timeoutMs, signal });
      if (answer.kind === "answered") return answer.value;
      if (answer.kind === "no-leader") wasWithoutLeader = true;
      // Silence of a short last attempt does not replace the answer that there is no leader.
      const isTooShort = question.kind === "query" && wasWithoutLeader && timeoutMs < limits.silenceMsMin;
      if (answer.kind === "unknown" && !(isTooShort && answer.isSilence === true)) doubt = answer;
      const refusal = answer.kind === "refused" ? backpressureOf(answer.refusal) : undefined;
      const otherwise = () => {
        const mayBeDone = question.kind === "command" && doubt !== undefined; // by an attempt before the refusal
        return mayBeDone || refusal === undefined ? this.#givenUp(question.kind, doubt, signal) : refusal;
      };
      if (signal.aborted || this.#isClosed()) throw otherwise();
      throw new TryAgain({
        atLeastMs: refusal?.retryAfterMs ?? 0,
        isProgress: this.#newLeaders > newLeadersBefore,
        hurry$: refusal === undefined ? merge(abortOf(signal), this.#newTerm$) : abortOf(signal),
        otherwise,
      });
    };
    return await retried(attempt, { ...askPace(this.#deps), giveUpAtMs });
  }

  /** Asks once, and stops waiting when a new leader begins. Failures of the connection are results, not errors.
   *  @throws InvalidMessageError when `bytes` exceed the server's maximum */
  async once<Schema extends z.ZodType>(
    question: Question<Schema>,
    bytes: Uint8Array,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Answer<z.infer<Schema>>> {
    const { transport, horizon, aborts, mayAsk } = this.#deps;
    if (mayAsk?.(question.subject) === false)
      return { kind: "refused", refusal: forbidden({ operation: "publish", subject: question.subject }) };
    const knownWhenAsked = horizon.known;
    const newLeadersBefore = this.#newLeaders;
    // Links no signal unless the caller has one: a controller costs as much as the rest of a small request.
    const ended = options.signal === undefined ? undefined : aborts.linkedTo(options.signal);
    const asked = { timeoutMs: options.timeoutMs, ending: this.#newLeader };
    let outcome: RequestOutcome | Forbidden;
    try {
      outcome = await transport.request(
        question.subject,
        bytes,
        ended === undefined ? asked : { ...asked, signal: ended.signal },
      );
    } finally {
      ended?.abort();
    }
    switch (outcome.kind) {
      case "no-responders":
        return { kind: "no-leader" };
      case "timeout":
        return this.#newLeaders > newLeadersBefore
          ? { kind: "unknown", why: "another coordinator began to lead" }
          : { kind: "unknown", why: "no answer came in time", isSilence: true };
      case "disconnected":
        return { kind: "unknown", why: "the connection to the server was lost" };
      case "forbidden":
        return { kind: "refused", refusal: forbidden(outcome) };
      case "answered": {
        const answer = readAnswer(outcome.data, question);
        if (answer.kind === "answered" && !isOfStandby(answer.value))
          horizon.noteAnswer(answer.value, knownWhenAsked);
        return answer;
      }
      default:
        return unreachable(outcome);
    }
  }

  #isClosed(): boolean {
    return this.#deps.transport.status() === "closed";
  }

  #givenUp(kind: QuestionKind, doubt: Doubt | undefined, signal: AbortSignal): unknown {
    const options = signal.aborted ? { cause: signal.reason } : {};
    if (kind === "command" && doubt !== undefined) return outcomeUnknown(doubt.why, options);
    if (kind === "query" && signal.aborted) return signal.reason;
    if (this.#isClosed())
      return (
        this.#deps.transport.closedBy ??
        new UnreachableError("The connection to the swarm is closed", options)
      );
    if (doubt?.isUnreadable) return unreadableAnswer(doubt.why, options);
    if (doubt !== undefined)
      return new UnreachableError(
        `No coordinator answered: ${doubt.why}. \`waggle doctor\` shows more`,
        options,
      );
    return noLeader(options, kind);
  }
}

function unreadableAnswer(why: string, options: { readonly cause?: unknown }): UnreadableAnswerError {
  return new UnreadableAnswerError(
    `An answer does not follow this version's protocol: ${why}. Run coordinators and ` +
      "clients of one version, and check for other programs on the swarm's subjects",
    options,
  );
}

export function noLeader(
  options: { readonly cause?: unknown } = {},
  asked: QuestionKind = "command",
): NoLeaderError {
  const sentence =
    "No leader answers: is a coordinator of this swarm running (`waggle up`)? `waggle doctor` shows which swarm and " +
    "server were asked";
  return new NoLeaderError(asked === "command" ? `${sentence}. Nothing was done` : sentence, options);
}

export function outcomeUnknown(why: string, options: { readonly cause?: unknown } = {}): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `Whether it was done is unknown: ${why}. Repeat the request, tasks with the same ids: nothing is done twice`,
    options,
  );
}

/** Backpressure is temporary, and asking again is harmless. @throws WaggleError for any other refusal */
function backpressureOf(refusal: CodedError): BackpressureError {
  const error = errorFrom(refusal);
  if (error instanceof BackpressureError) return error;
  throw error;
}

/** A standby's answer may be older than what the client knows, and proves no loss. */
function isOfStandby(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "stale" in answer && answer.stale === true;
}

function readAnswer<Schema extends z.ZodType>(
  bytes: Uint8Array,
  { schema, isRight }: Question<Schema>,
): Answer<z.infer<Schema>> {
  const right = isRight === undefined ? undefined : readQuickly(bytes, isRight);
  if (right !== undefined) return { kind: "answered", value: right };
  const parsed = parseJson(bytes);
  if (!parsed.ok) return unreadable(`the answer does not parse: ${parsed.message}`);
  if (isRefusal(parsed.value)) {
    const refusal = check(parsed.value, codedErrorSchema);
    return refusal.ok
      ? answerOfRefusal(refusal.value)
      : unreadable(`the refusal does not parse: ${refusal.message}`);
  }
  const checked = check(parsed.value, schema);
  return checked.ok
    ? { kind: "answered", value: checked.value }
    : unreadable(`the answer is invalid: ${checked.message}`);
}

function unreadable(why: string): Doubt {
  return { kind: "unknown", why, isUnreadable: true };
}

/** A coordinator that lost the lead, or cannot reach its journal, says so; the outcome stays open. */
function answerOfRefusal(refusal: CodedError): Answer<never> {
  switch (refusal.code) {
    case "WAGGLE_NO_LEADER":
      return { kind: "no-leader" };
    case "WAGGLE_OUTCOME_UNKNOWN":
    case "WAGGLE_UNREACHABLE":
      return { kind: "unknown", why: refusal.message };
    default:
      return { kind: "refused", refusal };
  }
}
