// Requests of one agent to the leader: each is sent once, and its answer is read and classified. Callers repeat
// requests in their own way.

import type { z } from "zod";
import { unreachable } from "../assert.ts";
import { NO_GROUP } from "../ids.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { check, encode, encodeText, parseJson } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import type { Horizon } from "../protocol/horizon.ts";
import { isRefusal, type QuickCheck, readQuickly } from "../protocol/quick-checks.ts";
import { type CodedError, codedErrorSchema } from "../protocol/schemas.ts";
import type { AgentVerb, Subjects } from "../protocol/subjects.ts";
import type { Transport } from "../transport/transport.ts";
import type { BundleMember, OutcomeTaker, PartOutcome } from "./bundler.ts";

export type Answer<Value> =
  | { readonly kind: "answered"; readonly value: Value }
  /** The leader refused the message as a whole. */
  | { readonly kind: "refused"; readonly refusal: CodedError }
  /** No definite answer: no leader, a lost answer, or an unreadable answer. Ask again. */
  | { readonly kind: "unanswered"; readonly why: string };

/** How an answer is read. */
export interface Reading<Schema extends z.ZodType> {
  readonly schema: Schema;
  /** Proves most right answers without the schema. */
  readonly isRight?: QuickCheck<z.infer<Schema>>;
}

export interface AnswerTaker<Value> {
  readonly onAnswer: (answer: Answer<Value>) => void;
  /** The message exceeds the server's maximum, or `onAnswer` threw: not a failure of the connection. */
  readonly onFailure: (error: unknown) => void;
}

export class LeaderClient {
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  readonly #group: string;
  readonly #agent: string;
  readonly #horizon: Horizon;
  readonly #bundle: BundleMember | undefined;

  /** @param horizon learns the journal's position from each answer */
  constructor(
    transport: Transport,
    subjects: Subjects,
    { id, group = NO_GROUP }: { readonly id: string; readonly group?: string },
    horizon: Horizon,
    bundle?: BundleMember,
  ) {
    this.#bundle = bundle;
    this.#horizon = horizon;
    this.#transport = transport;
    this.#subjects = subjects;
    this.#group = group;
    this.#agent = id;
  }

  /** Maximum size of a message. */
  get roomBytes(): number {
    return this.#transport.maxPayloadBytes;
  }

  /** Asks once. Failures of the connection are results, not errors.
   *  @param message JSON, or an object to encode
   *  @throws InvalidMessageError when the message exceeds the server's maximum */
  async ask<Schema extends z.ZodType>(
    verb: AgentVerb,
    message: string | object,
    schema: Schema,
  ): Promise<Answer<z.infer<Schema>>> {
    return await new Promise((onAnswer, onFailure) => {
      const text = typeof message === "string" ? message : JSON.stringify(message);
      this.request(verb, text, { schema }, { onAnswer, onFailure });
    });
  }

  /** As `ask`, for frequent messages: without a promise, and throws nothing.
   *  @returns a function that ends the wait: the answer is `unanswered`. `onAnswer` may be called before it returns */
  request<Schema extends z.ZodType>(
    verb: AgentVerb,
    message: string,
    reading: Reading<Schema>,
    { onAnswer, onFailure }: AnswerTaker<z.infer<Schema>>,
  ): () => void {
    const knownWhenAsked = this.#horizon.known;
    const settle = (outcome: PartOutcome) => {
      try {
        const answer = answerOf(outcome, reading);
        if (answer.kind === "answered") this.#horizon.noteAnswer(answer.value, knownWhenAsked);
        onAnswer(answer);
      } catch (error) {
        onFailure(error);
      }
    };
    return this.#send(verb, message, { settle, fail: onFailure });
  }

  #send(verb: AgentVerb, message: string, taker: OutcomeTaker): () => void {
    if (this.#bundle?.carries(verb) === true) return this.#bundle.request(verb, message, taker);
    const ending = new Listeners();
    const subject = this.#subjects.agent(this.#group, this.#agent, verb);
    const terms = { timeoutMs: limits.requestTimeoutMs, ending };
    this.#transport.request(subject, encodeText(message), terms).then(taker.settle, taker.fail);
    return () => ending.notify();
  }

  publishMessage(verb: AgentVerb, message: object): void {
    this.#transport.publish(this.#subjects.agent(this.#group, this.#agent, verb), encode(message));
  }
}

function answerOf<Schema extends z.ZodType>(
  outcome: PartOutcome,
  reading: Reading<Schema>,
): Answer<z.infer<Schema>> {
  switch (outcome.kind) {
    case "part":
      return readPart(outcome.value, reading);
    case "answered":
      return readBytes(outcome.data, reading);
    case "no-responders":
      return { kind: "unanswered", why: "there is no leader" };
    case "timeout":
      return { kind: "unanswered", why: "no answer came in time" };
    case "forbidden":
      return { kind: "refused", refusal: forbidden(outcome) };
    case "disconnected":
      return { kind: "unanswered", why: "the connection to the server was lost" };
    default:
      return unreachable(outcome);
  }
}

function readBytes<Schema extends z.ZodType>(
  bytes: Uint8Array,
  { schema, isRight }: Reading<Schema>,
): Answer<z.infer<Schema>> {
  const value = isRight === undefined ? undefined : readQuickly(bytes, isRight);
  if (value !== undefined) return { kind: "answered", value };
  const parsed = parseJson(bytes);
  return parsed.ok ? readAnswer(parsed.value, schema) : unreadable(parsed);
}

function readPart<Schema extends z.ZodType>(
  value: unknown,
  { schema, isRight }: Reading<Schema>,
): Answer<z.infer<Schema>> {
  return isRight?.(value) === true ? { kind: "answered", value } : readAnswer(value, schema);
}

function readAnswer<Schema extends z.ZodType>(value: unknown, schema: Schema): Answer<z.infer<Schema>> {
  if (isRefusal(value)) {
    const refusal = check(value, codedErrorSchema);
    return refusal.ok ? sorted(refusal.value) : unreadable(refusal);
  }
  const checked = check(value, schema);
  return checked.ok ? { kind: "answered", value: checked.value } : unreadable(checked);
}

/** Refusals that decide nothing. All others are definite. */
const open: ReadonlySet<string> = new Set([
  "WAGGLE_NO_LEADER",
  "WAGGLE_OUTCOME_UNKNOWN",
  "WAGGLE_UNREACHABLE",
  "WAGGLE_BACKPRESSURE",
  "WAGGLE_JOURNAL_FULL",
]);

function sorted(refusal: CodedError): Answer<never> {
  if (open.has(refusal.code)) return { kind: "unanswered", why: refusal.message };
  return { kind: "refused", refusal };
}

function unreadable({ message }: CodedError): Answer<never> {
  return { kind: "unanswered", why: `the answer does not parse: ${message}` };
}
