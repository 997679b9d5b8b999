// The calls of models, shared by all adapters: a slot per call (lease.ts), read ahead in streams.
//
// Streams are read ahead: the slot is held for the provider's time, whatever the reader does, and the tokens at the end
// of the stream are always seen. Frameworks retry outside of a lease, so no slot is held during their back-off.
//
// A quota that is used up (429) becomes a hold, placed with the release of the slot: no waiting call gets the slot
// before. So does an overload with a time (503, 529). A 429 without a time places a hold when it is the third in a row.
// Inside a handler the call also throws InfrastructureError, so that the task is tried again after the hold.

import { randomUUID } from "node:crypto";
import { Aborts } from "../abort.ts";
import { callRecordOf } from "../agent/current-attempt.ts";
import { type HandlerContext, InfrastructureError } from "../agent/handler.ts";
import type { CallRecord } from "../agent/hidden-failures.ts";
import type { AcquireOptions, Slot } from "../agent/slots.ts";
import type { Swarm } from "../client/swarm.ts";
import { headOf } from "../cut-text.ts";
import { InvalidValueError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { said } from "../state/argument.ts";
import { promptTokensOf, weightOf } from "../state/weight.ts";
import { type CallOptions, readCallOptions, readSwarm } from "./call-options.ts";
import { Lease, refusedBy } from "./lease.ts";
import { promptCharacters } from "./prompt-text.ts";
import { isRefused, isUnanswered, type Refusal, refusalIn, refusalOf } from "./refusal.ts";
import type { TokenUsage } from "./token-usage.ts";

export interface ModelCall {
  /** The provider's id of the model, such as `gpt-4o`. */
  readonly model: string | undefined;
  /** Text or messages, for the weight and the estimate of tokens. */
  readonly prompt: unknown;
  /** Ends the wait for a slot, and the call. */
  readonly signal?: AbortSignal | null | undefined;
  /** For a framework that hides the errors of its streams: the name of the error that it throws instead, if any. */
  readonly standIn?: string;
}

/** How a stream is read ahead, and what its chunks say. */
export interface StreamReading<Chunk> {
  readonly usageOf: (chunk: Chunk) => TokenUsage | undefined;
  /** The error that a chunk reports. Asked after `usageOf`. */
  readonly errorOf?: (chunk: Chunk) => unknown;
  /** Text of the answer in a chunk, where the framework hides errors. */
  readonly textOf?: (chunk: Chunk) => string | undefined;
  /** Default: the later numbers count. */
  readonly add?: (before: TokenUsage, now: TokenUsage) => TokenUsage;
  /** True for the last chunk that says something: a reader need not read the end after it. */
  readonly isLast?: (chunk: Chunk) => boolean;
  /** Whether the chunk is part of the answer, and renews the idle time of the slot. Default: every chunk is. */
  readonly isAnswer?: (chunk: Chunk) => boolean;
  /** What is read ahead at most. Default: `limits.chunksReadAheadMax` chunks. */
  readonly strategy?: QueuingStrategy<Chunk>;
}

/** The calls of one adapter. */
export class ModelCalls {
  readonly #swarm: Swarm;
  readonly #options: CallOptions;
  readonly #aborts = new Aborts();
  /** Refusals that still hold, so that a framework's retries within one attempt cost no call. */
  readonly #refusedByAttempt = new WeakMap<HandlerContext, Map<string, Refused>>();

  /** @param adapter prefix of refused options @throws InvalidValueError naming the argument or option */
  constructor(adapter: string, swarm: Swarm, options: CallOptions | undefined) {
    this.#swarm = readSwarm(adapter, swarm);
    this.#options = readCallOptions(adapter, options);
  }

  /** Calls a model that answers at once, without a stream. @throws the errors of `open` and of `send` */
  async once<Answer>(
    call: ModelCall,
    send: (signal: AbortSignal) => PromiseLike<Answer>,
    usageOf: (answer: Answer) => TokenUsage | undefined,
  ): Promise<Answer> {
    const lease = await this.open(call);
    try {
      const answer = await lease.race(send(lease.signal));
      lease.note(usageOf(answer));
      lease.succeed();
      return answer;
    } catch (error) {
      throw this.failed(lease, error);
    }
  }

  /** Makes a call that has a stream. The stream fails with what the source throws, and when the lease is aborted.
   *  @throws as `open`, and what `send` throws */
  async stream<Chunk>(
    call: ModelCall,
    send: (signal: AbortSignal) => PromiseLike<AsyncIterable<Chunk>> | AsyncIterable<Chunk>,
    reading: StreamReading<Chunk>,
  ): Promise<ReadableStream<Chunk>> {
    const lease = await this.open(call);
    try {
      return this.readAhead(lease, await lease.race(send(lease.signal)), reading);
    } catch (error) {
      throw this.failed(lease, error);
    }
  }

  /** Acquires the slot of a call. @throws InvalidValueError for a model without an id; as `Swarm.acquire`;
   *  InfrastructureError inside an attempt whose earlier call was refused, until the provider's time is over */
  async open(call: ModelCall): Promise<Lease> {
    const attempt = this.#swarm.currentAttempt();
    const record = callRecordOf(attempt);
    try {
      return await this.#open(call, attempt, record);
    } catch (error) {
      if (call.standIn !== undefined && call.signal?.aborted !== true) record?.failed(error, call.standIn);
      throw error;
    }
  }

  async #open(
    { model: id, prompt, signal, standIn }: ModelCall,
    attempt: HandlerContext | undefined,
    record: CallRecord | undefined,
  ): Promise<Lease> {
    const { resource: named, tiers, ...options } = this.#options;
    const model = modelOf(id, named);
    const resource = resourceOf(model, named);
    this.#throwIfRefused(attempt, resource);
    const characters = promptCharacters(prompt);
    const terms = {
      tokens: Math.ceil(promptTokensOf(characters)) + limits.answerTokensExpected,
      label: headOf(model, limits.slotLabelCharactersMax),
      idleTimeoutMs: limits.callIdleMs,
      ...options,
      weight: Math.min(limits.taskWeightMax, weightOf(model, characters, tiers)),
      ...(signal === null || signal === undefined ? {} : { signal }),
    };
    const slot = await this.#acquire(attempt, resource, terms).catch((error) => {
      throw explained(error, model, resource);
    });
    const of = { slot, attempt, record, standIn, model, resource };
    return new Lease({ ...of, aborts: this.#aborts, signal: signal ?? undefined });
  }

  /** Ends a failed call. @returns the error to throw */
  failed(lease: Lease, error: unknown): unknown {
    const toThrow = this.#failed(lease, error);
    lease.noteFailed(toThrow);
    return toThrow;
  }

  #failed(lease: Lease, error: unknown): unknown {
    if (lease.isOver) {
      lease.refuseLate(error);
      return error;
    }
    const refusal = refusalIn(error, Date.now());
    if (refusal !== undefined) lease.noteUncharged();
    if (refusal === undefined) lease.end({ partial: true, unanswered: !lease.isAnswered });
    else if (isRefused(refusal)) return this.#refused(lease, refusal, error) ?? error;
    else lease.end({ unanswered: isUnanswered(refusal) });
    return error;
  }

  /** As `failed`, for an answer of HTTP. @throws InfrastructureError inside a handler */
  refused(lease: Lease, { status, headers }: Response): void {
    lease.noteUncharged();
    const refusal = refusalOf(status, headers, Date.now());
    if (!isRefused(refusal)) return lease.end({ unanswered: isUnanswered(refusal) });
    const error = this.#refused(lease, refusal, undefined);
    if (error !== undefined) throw error;
  }

  /** A chunk of a stream reports an error. The stream may go on, to say how many tokens were used.
   *  @throws InfrastructureError inside a handler, when the call is refused */
  failedWithin(lease: Lease, error: unknown): void {
    const refusal = refusalIn(error, Date.now());
    if (refusal === undefined || !isRefused(refusal)) {
      lease.noteFailed(error);
      return lease.mustEnd({ partial: true, unanswered: true });
    }
    lease.noteUncharged();
    lease.mustEnd({ partial: true, refused: refusedBy(lease.model, refusal) });
    const toThrow = lease.attempt === undefined ? undefined : this.#refused(lease, refusal, error);
    if (toThrow !== undefined) throw toThrow;
  }

  /** Reads a source to its end, while the lease lasts. */
  readAhead<Chunk>(
    lease: Lease,
    source: AsyncIterable<Chunk>,
    reading: StreamReading<Chunk>,
  ): ReadableStream<Chunk> {
    const { usageOf, errorOf, textOf, add, isLast, isAnswer, strategy } = reading;
    const chunks = source[Symbol.asyncIterator]();
    const pull = async (to: ReadableStreamDefaultController<Chunk>) => {
      try {
        const next = await lease.race(chunks.next());
        if (next.done === true) {
          lease.succeed();
          return to.close();
        }
        lease.note(usageOf(next.value), add);
        const error = errorOf?.(next.value);
        if (error !== undefined) this.failedWithin(lease, error);
        lease.noteText(textOf?.(next.value));
        if (isAnswer?.(next.value) !== false) lease.touch();
        if (isLast?.(next.value)) lease.succeed();
        to.enqueue(next.value);
      } catch (error) {
        void chunks.return?.().then(undefined, () => undefined); // a source that fails while it is closed is over
        to.error(this.failed(lease, error));
      }
    };
    const cancel = (reason: unknown) => {
      lease.abandon(reason);
      void chunks.return?.().then(undefined, () => undefined); // as above
    };
    const ahead = strategy ?? { highWaterMark: limits.chunksReadAheadMax };
    return new ReadableStream<Chunk>({ pull, cancel }, ahead);
  }

  /** Through the attempt inside a handler: the end of the attempt releases what is left. */
  async #acquire(
    attempt: HandlerContext | undefined,
    resource: string,
    terms: AcquireOptions,
  ): Promise<Slot> {
    if (attempt === undefined) return await this.#swarm.acquire(resource, terms);
    const { project: _project, user: _user, ...rest } = terms;
    // A holder of its own: calls of one attempt may run side by side, and on any resources.
    return await attempt.acquire(resource, { ...rest, holder: randomUUID() });
  }

  /** Ends a lease whose call was refused, and puts the resource on hold.
   *  @returns the error to throw inside a handler, so that the task is tried again; undefined elsewhere */
  #refused(lease: Lease, refusal: Refusal, cause: unknown): InfrastructureError | undefined {
    const { attempt, model, resource } = lease;
    const refusedSlot = refusedBy(model, refusal);
    lease.end({ refused: refusedSlot });
    if (attempt === undefined) return undefined;
    const { reason, ...wait } = refusedSlot;
    const error = new InfrastructureError(reason, { cause, scope: { resource }, ...wait });
    const refused = this.#refusedByAttempt.get(attempt) ?? new Map<string, Refused>();
    refused.set(resource, { error, untilMs: Date.now() + (refusal.retryAfterMs ?? 0) });
    this.#refusedByAttempt.set(attempt, refused);
    return error;
  }

  #throwIfRefused(attempt: HandlerContext | undefined, resource: string): void {
    const refused = attempt === undefined ? undefined : this.#refusedByAttempt.get(attempt)?.get(resource);
    if (refused !== undefined && Date.now() < refused.untilMs) throw refused.error;
  }
}

interface Refused {
  readonly error: InfrastructureError;
  /** ms since the Unix epoch. */
  readonly untilMs: number;
}

/** A fake model may have no id: then the resource stands for it. @throws InvalidValueError */
function modelOf(id: unknown, named: CallOptions["resource"]): string {
  const model = id === undefined && typeof named === "string" ? named : id;
  if (typeof model === "string" && model.trim() !== "") return model;
  const sentence =
    `the id of a model must be text, such as "gpt-4o", not ${said(model)}: name the model, or name a resource with ` +
    "the adapter's option `resource`";
  throw new InvalidValueError(sentence, { field: "model" });
}

/** @throws InvalidValueError */
function resourceOf(model: string, named: CallOptions["resource"]): string {
  const resource: unknown = typeof named === "function" ? named(model) : (named ?? model);
  if (typeof resource === "string" && resource !== "") return resource;
  const sentence = `resource: the function must return the name of a resource for ${model}, not ${said(resource)}`;
  throw new InvalidValueError(sentence, { field: "resource" });
}

/** Names the model, and the remedy, where the resource is unknown or cannot be one. */
function explained(error: unknown, model: string, resource: string): unknown {
  if (!(error instanceof WaggleError)) return error;
  if (error.code === "WAGGLE_INVALID_MESSAGE" && error.field?.startsWith("resources") === true) {
    const sentence =
      `a call of ${model} needs a slot of the resource '${headOf(resource, 40)}', an invalid name (1–128 printable ` +
      "characters without spaces): name a resource with the adapter's option `resource`";
    return new InvalidValueError(sentence, { field: "resource", cause: error });
  }
  if (error.code !== "WAGGLE_UNKNOWN_RESOURCE") return error;
  const sentence =
    `a call of ${model} needs a slot of the unknown resource ${resource}: set its number of concurrent calls ` +
    `(\`waggle resource set ${resource} --slots 4\`), or name a different resource with the adapter's option \`resource\``;
  return new WaggleError(error.code, sentence, { field: "resource", cause: error });
}
