// Runs handlers for attempts, up to a maximum at a time, and reports how each ended. Knows neither leader nor
// leases: the session says when to abort. Never abandons a running handler, because a running handler may still
// have effects.

import type { Logger } from "pino";
import * as z from "zod";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { HoldClaim } from "../protocol/schemas.ts";
import type { RunSpan, Tracing } from "../tracing/tracing.ts";
import { ChunkBuffer, chunkOf } from "./chunk-buffer.ts";
import { type ReachedSwarm, type RunningAttempt, runAs } from "./current-attempt.ts";
import { isGenerated, resultOf } from "./generated.ts";
import {
  type Handler,
  type HandlerContext,
  type HandlerLog,
  HandlerTask,
  InvalidInputError,
} from "./handler.ts";
import { HiddenFailures } from "./hidden-failures.ts";
import type {
  AbortReason,
  AttemptEnd,
  AttemptKey,
  AttemptOrder,
  ProgressReport,
  SessionOrder,
} from "./link.ts";
import { LogBuffer } from "./log-buffer.ts";
import { argument } from "./options.ts";
import { opened, type PayloadCodec, sealedResult } from "./payload-codec.ts";
import { resultText } from "./result-text.ts";
import { releaseAfterError } from "./slot-refusal.ts";
import type { AbandonableSlot, AcquireOptions, AcquiringAttempt, Slot, Slots } from "./slots.ts";
import { classAndCodeOf, isA, lineOf, textOf, wordsOf } from "./words.ts";
import { infrastructureErrorIn } from "./wrapped-error.ts";

export interface RunnerDeps {
  readonly handler: Handler;
  readonly reached: ReachedSwarm;
  readonly slots: Slots;
  /** Opens payloads and seals results. Undefined: they travel as they are. */
  readonly codec?: PayloadCodec | undefined;
  /** False: reports hold class and code of an error alone. The agent's logger gets the text in any case. */
  readonly reportsErrorText: boolean;
  /** Maximum number of concurrent handlers, at least 1. */
  readonly maxConcurrent: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Id of the agent, for spans. */
  readonly agent: string;
  /** Undefined: no spans. */
  readonly tracing: Tracing | undefined;
  /** Sends ends and progress to the session, with many attempts per message. */
  readonly send: (order: SessionOrder) => void;
}

/** Numbers of attempts by outcome since the agent started; each attempt counts once. */
export interface RunnerCounts {
  running: number;
  /** Prefetched and not started. */
  waiting: number;
  completed: number;
  failed: number;
  infrastructure: number;
  invalid: number;
  /** Begun, aborted, and not completed. */
  aborted: number;
}

export class Runner {
  readonly #deps: RunnerDeps;
  /** Waiting and running attempts. */
  readonly #attempts = new Map<AttemptKey, Attempt>();
  /** Waiting attempts in order of arrival. */
  #waiting: Attempt[] = [];
  readonly #progress: ProgressBuffer;
  readonly #chunks: ChunkBuffer;
  readonly #logs: LogBuffer;
  readonly #shared: Shared;
  readonly #timeouts: Timeouts;
  readonly #counts = { completed: 0, failed: 0, infrastructure: 0, invalid: 0, aborted: 0 };
  #running = 0;
  #willStart = false;
  #willSend = false;
  #ends: AttemptEnd[] = [];
  #idle: (() => void)[] = [];

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#progress = new ProgressBuffer(deps.clock, (reports) => deps.send({ type: "progress", reports }));
    this.#chunks = new ChunkBuffer(deps.clock, (emitted) => deps.send({ type: "chunks", ...emitted }));
    this.#logs = new LogBuffer(deps.clock, (written) => deps.send({ type: "log", ...written }));
    this.#shared = {
      progress: this.#progress,
      chunks: this.#chunks,
      logs: this.#logs,
      failures: new FailureNotices(deps.clock),
    };
    this.#timeouts = new Timeouts(deps.clock, this.#attempts);
  }

  counts(): RunnerCounts {
    return { running: this.#running, waiting: this.#waiting.length, ...this.#counts };
  }

  /** Queues attempts until a handler is free. Handlers start when all messages that already arrived were obeyed: a
   *  handler may block this thread. */
  run(orders: readonly AttemptOrder[]): void {
    const { clock } = this.#deps;
    const receivedAt = clock.monotonicMs();
    for (const order of orders) {
      const attempt = new Attempt(this.#deps, order, this.#shared, receivedAt);
      this.#attempts.set(order.key, attempt);
      this.#waiting.push(attempt);
    }
    if (this.#willStart) return;
    this.#willStart = true;
    clock.soon(() => {
      this.#willStart = false;
      this.#startWaiting();
      this.#sendEnds();
    });
  }

  /** Aborts handlers. Attempts that have not started end at once. */
  abort(keys: readonly AttemptKey[], reason: AbortReason): void {
    for (const key of keys) {
      const attempt = this.#attempts.get(key);
      if (attempt === undefined) continue;
      if (attempt.hasBegun) attempt.abort(reason);
      else {
        this.#attempts.delete(key);
        this.#report({ key, outcome: "infrastructure", error: whyAborted[reason], tokens: 0 });
        this.#sendEndsSoon();
      }
    }
    this.#waiting = this.#waiting.filter(({ key }) => this.#attempts.has(key));
  }

  abortAll(reason: AbortReason): void {
    this.abort([...this.#attempts.keys()], reason);
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #startWaiting(): void {
    while (this.#running < this.#deps.maxConcurrent) {
      const attempt = this.#waiting.shift();
      if (attempt === undefined) return;
      this.#start(attempt);
    }
  }

  #start(attempt: Attempt): void {
    this.#running += 1;
    this.#timeouts.note(attempt.dueAt);
    const end = attempt.run((late) => this.#endedLate(late));
    if (end !== undefined) this.#ended(end);
  }

  #endedLate(end: AttemptEnd): void {
    this.#ended(end);
    this.#startWaiting();
    if (this.#running > 0) return this.#sendEndsSoon();
    this.#sendEnds();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #ended(end: AttemptEnd): void {
    this.#running -= 1;
    this.#attempts.delete(end.key);
    this.#progress.drop(end.key);
    this.#chunks.end(end.key);
    this.#logs.flush(end.key);
    this.#report(end);
  }

  #report(end: AttemptEnd): void {
    this.#counts[end.outcome] += 1;
    this.#ends.push(end);
  }

  /** After the present callbacks: handlers that end together share a message. */
  #sendEndsSoon(): void {
    if (this.#willSend) return;
    this.#willSend = true;
    this.#deps.clock.soon(() => {
      this.#willSend = false;
      this.#sendEnds();
    });
  }

  #sendEnds(): void {
    if (this.#ends.length === 0) return;
    const ends = this.#ends;
    this.#ends = [];
    this.#deps.send({ type: "ended", ends });
  }
}

/** What the attempts of an agent share. */
interface Shared {
  readonly progress: ProgressBuffer;
  readonly chunks: ChunkBuffer;
  readonly logs: LogBuffer;
  readonly failures: FailureNotices;
}

/** One call of the handler, and its context. */
class Attempt implements RunningAttempt {
  task: HandlerTask;
  readonly #deps: RunnerDeps;
  #order: AttemptOrder;
  readonly #shared: Shared;
  readonly #dueAt: number;
  #hasBegun = false;
  #hasEnded = false;
  #controller: AbortController | undefined;
  #logger: Logger | undefined;
  #log: HandlerLog | undefined;
  #abortedFor: AbortReason | "timeout" | undefined;
  /** As reported; may exceed the maximum that counts. */
  #tokens: number | undefined;
  #slots: AttemptSlots | undefined;
  #hiddenFailures: HiddenFailures | undefined;
  #span: RunSpan | undefined;

  constructor(deps: RunnerDeps, order: AttemptOrder, shared: Shared, receivedAt: number) {
    this.#deps = deps;
    this.#order = order;
    this.#shared = shared;
    // The leader's timeout counts from the assignment. The agent only knows the time of arrival.
    this.#dueAt = receivedAt + order.timeoutMs;
    this.task = new HandlerTask(order);
  }

  get key(): AttemptKey {
    return this.#order.key;
  }

  /** The handler was called. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get reached(): ReachedSwarm {
    return this.#deps.reached;
  }

  /** When the attempt is too slow, monotonic ms. */
  get dueAt(): number {
    return this.#dueAt;
  }

  // Created on use: most handlers of short tasks use none. Functions, because handlers take the context apart.
  get progress(): HandlerContext["progress"] {
    return (fraction, message) => this.#shared.progress.note(this.#order.key, fraction, message);
  }

  get emit(): HandlerContext["emit"] {
    return (value) => {
      const chunk = chunkOf(value);
      const { progress, chunks } = this.#shared;
      const { key, stream } = this.#order;
      // Chunks are not sealed.
      if (stream === true && this.#deps.codec === undefined) chunks.add(key, chunk);
      else progress.note(key, undefined, undefined);
    };
  }

  get reportTokens(): HandlerContext["reportTokens"] {
    return (count) => {
      this.#countTokens(argument(["reportTokens", "tokens"], count, wholeTokens));
    };
  }

  get acquire(): HandlerContext["acquire"] {
    return async (resources, options) => {
      const { key, project, task, attempt } = this.#order;
      this.#slots ??= new AttemptSlots(this.#deps.slots, {
        holder: key,
        task: { project, task, attempt },
        charge: (tokens) => this.#countTokens(tokens),
      });
      return await this.#slots.acquire(resources, options, this.signal);
    };
  }

  get hiddenFailures(): HiddenFailures {
    this.#hiddenFailures ??= new HiddenFailures();
    return this.#hiddenFailures;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortedFor !== undefined) this.#controller.abort(abortError(this.#abortedFor));
    }
    return this.#controller.signal;
  }

  get logger(): Logger {
    this.#logger ??= this.#deps.log.child({ task: this.task.id, attempt: this.task.attempt });
    return this.#logger;
  }

  get log(): HandlerLog {
    this.#log ??= this.#makeLog();
    return this.#log;
  }

  #makeLog(): HandlerLog {
    const { key } = this.#order;
    const decoder = new TextDecoder();
    const write = (text: unknown) =>
      this.#shared.logs.write(
        key,
        isA(text, Uint8Array)
          ? decoder.decode(text, { stream: true })
          : typeof text === "string"
            ? text
            : textOf(text),
      );
    const log = (...values: unknown[]) => {
      const line = lineOf(values);
      this.#shared.logs.write(key, `${line}\n`);
      this.#logLine("info", line);
    };
    return Object.assign(log, { write });
  }

  #countTokens(count: number): void {
    const { tokensPerAttemptMax: most } = limits;
    const before = this.#tokens ?? 0;
    this.#tokens = before + count;
    if (before <= most && this.#tokens > most)
      this.#logLine("warn", `${this.#tokens} tokens were reported; at most ${most} count per attempt`);
  }

  abort(reason: AbortReason | "timeout"): void {
    if (this.#abortedFor !== undefined) return;
    this.#abortedFor = reason;
    this.#controller?.abort(abortError(reason));
  }

  /** Calls the handler. Returns the end when the handler returns text or nothing; otherwise `onEnd` gets the end later.
   *  Never throws, whatever the handler throws or returns: otherwise the agent's capacity would be blocked for good. */
  run(onEnd: (end: AttemptEnd) => void): AttemptEnd | undefined {
    const startedAt = this.#deps.clock.monotonicMs();
    this.#hasBegun = true;
    const end = runAs(this, () => this.#runFrom(startedAt));
    if (!(end instanceof Promise)) return end;
    void end.then(onEnd);
    return undefined;
  }

  #runFrom(startedAt: number): AttemptEnd | Promise<AttemptEnd> {
    try {
      const value = this.#callHandler();
      if (typeof value === "string" || value === undefined) return this.#end(verdictOf(value), startedAt);
      return this.#await(value, startedAt);
    } catch (error) {
      return this.#end(this.#failure(error), startedAt);
    }
  }

  #callHandler(): unknown {
    const { codec } = this.#deps;
    return codec === undefined ? this.#callPlainHandler() : this.#callSealed(codec);
  }

  /** @throws InvalidInputError when the codec cannot open the payload */
  async #callSealed(codec: PayloadCodec): Promise<unknown> {
    const { project, task, payload: text, encoding } = this.#order;
    const context = { project, task };
    try {
      const plain = await opened(codec, { text, encoding }, { of: "payload", ...context });
      this.#order = { ...this.#order, payload: plain.text, encoding: plain.encoding };
    } catch (cause) {
      throw new InvalidInputError(`the payload cannot be opened: ${wordsOf(cause)}`, { cause });
    }
    this.task = new HandlerTask(this.#order);
    const given = await this.#callPlainHandler();
    const value = isGenerated(given) ? await resultOf(given, this.emit, this.signal) : given;
    this.#hiddenFailures?.check(value);
    return await sealedResult(codec, value, { of: "result", ...context });
  }

  #callPlainHandler(): unknown {
    const { handler, tracing, agent } = this.#deps;
    const span = tracing?.run(this.#order, agent);
    if (span === undefined) return handler(this.task, this);
    this.#span = span;
    this.task = new HandlerTask({ ...this.#order, ...span.context });
    return span.within(() => handler(this.task, this));
  }

  async #await(value: unknown, startedAt: number): Promise<AttemptEnd> {
    try {
      const given = await value;
      const result = isGenerated(given) ? await resultOf(given, this.emit, this.signal) : given;
      this.#hiddenFailures?.check(result);
      return this.#end(verdictOf(result), startedAt);
    } catch (error) {
      return this.#end(this.#failure(this.#hiddenFailures?.behind(error) ?? error), startedAt);
    }
  }

  #end(verdict: Verdict, startedAt: number): AttemptEnd {
    const { clock } = this.#deps;
    this.#hasEnded = true;
    const forgotten = this.#slots?.end(verdict);
    if (forgotten !== undefined && forgotten.length > 0)
      this.#logLine("warn", "the handler ended without releasing all its slots; releasing them", {
        resources: forgotten,
      });
    const { outcome, result, encoding, error, hold } = verdict;
    const tokens =
      this.#tokens === undefined ? undefined : Math.min(this.#tokens, limits.tokensPerAttemptMax);
    const latencyMs = clock.monotonicMs() - startedAt;
    this.#span?.ended({ outcome, error, tokens });
    const { traceparent, tracestate } = this.#span?.context ?? this.#order;
    const { key } = this.#order;
    return { key, outcome, result, encoding, error, hold, tokens, latencyMs, traceparent, tracestate };
  }

  #failure(error: unknown): Verdict {
    const outcome = this.#classOf(error);
    const end = { outcome, error: this.#explain(error, wordsOf), hold: this.#holdOf(outcome, error) };
    if (end.outcome !== "aborted")
      this.#shared.failures.note((fields) => this.#logLine("warn", failureText(end), fields));
    return this.#deps.reportsErrorText ? end : { ...end, error: this.#explain(error, classAndCodeOf) };
  }

  /** The logger is user code as well, and may throw. */
  #logLine(level: "info" | "warn", text: string, fields: object = {}): void {
    try {
      this.logger[level](fields, text);
    } catch {
      return; // a log line that cannot be written must not fail the attempt
    }
  }

  /** A wrong hold must not cost the attempt: it is logged, and the report asks for no time. */
  #holdOf(outcome: AttemptEnd["outcome"], error: unknown): HoldClaim | undefined {
    const refused = outcome === "infrastructure" ? infrastructureErrorIn(error) : undefined;
    if (refused === undefined) return undefined;
    try {
      const { hold, wrongHold } = refused;
      if (wrongHold !== undefined) {
        const { code, field } = wrongHold;
        const sentence = `no hold is asked for: ${wrongHold.message}`;
        this.#logLine("warn", sentence, { code, field });
        // An agent without a logger is silent.
        this.#shared.logs.write(this.#order.key, `${sentence}\n`);
      }
      return hold;
    } catch {
      return {}; // the error is user code, and cannot be read
    }
  }

  /** An error thrown after an abort says nothing about the work before. */
  #classOf(error: unknown): "failed" | "infrastructure" | "invalid" | "aborted" {
    if (isA(error, InvalidInputError)) return "invalid";
    if (this.#abortedFor === "timeout") return "failed";
    if (this.#abortedFor !== undefined) return "aborted";
    return infrastructureErrorIn(error) === undefined ? "failed" : "infrastructure";
  }

  #explain(error: unknown, describe: (error: unknown) => string): string {
    if (this.#abortedFor !== undefined) return whyAborted[this.#abortedFor];
    return describe(infrastructureErrorIn(error) ?? error);
  }
}

type Verdict = Pick<AttemptEnd, "outcome" | "result" | "encoding" | "error" | "hold">;

/** @throws UnusableResultError */
function verdictOf(value: unknown): Verdict {
  return { outcome: "completed", ...resultText(value) };
}

/** Aborts running attempts that are too slow. One timer for the earliest: most attempts end before, and cost no
 *  timer. */
class Timeouts {
  readonly #clock: Clock;
  readonly #attempts: ReadonlyMap<AttemptKey, Attempt>;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => undefined;

  constructor(clock: Clock, attempts: ReadonlyMap<AttemptKey, Attempt>) {
    this.#clock = clock;
    this.#attempts = attempts;
  }

  /** An attempt starts. */
  note(dueAt: number): void {
    if (dueAt < this.#timerAt) this.#arm(dueAt);
  }

  #arm(dueAt: number): void {
    this.#cancelTimer();
    this.#timerAt = dueAt;
    const waitMs = Math.max(0, dueAt - this.#clock.monotonicMs());
    this.#cancelTimer = this.#clock.after(waitMs, () => this.#look(), { unref: true });
  }

  #look(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonicMs();
    let earliest = Number.POSITIVE_INFINITY;
    for (const attempt of this.#attempts.values()) {
      if (!attempt.hasBegun) continue;
      if (attempt.dueAt <= now) attempt.abort("timeout");
      else earliest = Math.min(earliest, attempt.dueAt);
    }
    if (earliest < Number.POSITIVE_INFINITY) this.#arm(earliest);
  }
}

/** Keeps a failing handler from filling the log: at most one notice per `limits.failureNoticeMs`. */
class FailureNotices {
  readonly #clock: Clock;
  #nextMs = Number.NEGATIVE_INFINITY;
  /** Failures since the last notice, without a notice of their own. */
  #unsaid = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(log: (fields: { readonly failedSinceLastNotice?: number }) => void): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#nextMs) {
      this.#unsaid += 1;
      return;
    }
    log(this.#unsaid === 0 ? {} : { failedSinceLastNotice: this.#unsaid + 1 });
    this.#nextMs = nowMs + limits.failureNoticeMs;
    this.#unsaid = 0;
  }
}

function failureText({ outcome, error }: Pick<AttemptEnd, "outcome" | "error">): string {
  return outcome === "failed" ? `attempt failed: ${error}` : `attempt failed (${outcome}): ${error}`;
}

const wholeTokens = z.int().min(0);

/** The slots of one attempt, released when the attempt ends. */
class AttemptSlots {
  readonly #slots: Slots;
  readonly #attempt: Omit<AcquiringAttempt, "signals">;
  readonly #held = new Set<AbandonableSlot>();
  readonly #over = new AbortController();

  constructor(slots: Slots, attempt: Omit<AcquiringAttempt, "signals">) {
    this.#slots = slots;
    this.#attempt = attempt;
  }

  async acquire(
    resources: string | readonly string[],
    options: AcquireOptions | undefined,
    signal: AbortSignal,
  ): Promise<Slot> {
    const signals = [signal, this.#over.signal];
    const slot = await this.#slots.acquire(resources, options, { ...this.#attempt, signals });
    for (const held of this.#held) if (held.isReleased) this.#held.delete(held);
    this.#held.add(slot);
    if (this.#over.signal.aborted) slot.abandon({ unanswered: true }); // granted at the moment the handler ended
    return slot;
  }

  /** Gives up pending requests and releases held slots. @returns the resources that were still held */
  end({ outcome, hold = {}, error = "" }: Pick<Verdict, "outcome" | "hold" | "error">): string[] {
    this.#over.abort(new DOMException("the handler has ended", "AbortError"));
    const forgotten = [...this.#held].filter((slot) => !slot.isReleased);
    for (const slot of forgotten)
      slot.abandon(outcome === "completed" ? {} : releaseAfterError(hold, error, slot.resources));
    return forgotten.flatMap(({ resources }) => resources);
  }
}

/** The newest report of each attempt, passed on periodically. */
class ProgressBuffer {
  readonly #clock: Clock;
  readonly #pass: (reports: readonly ProgressReport[]) => void;
  readonly #newest = new Map<AttemptKey, ProgressReport>();
  #isResting = false;

  constructor(clock: Clock, pass: (reports: readonly ProgressReport[]) => void) {
    this.#clock = clock;
    this.#pass = pass;
  }

  /** Accepts any values, because plain JavaScript may pass any: a report of a wrong shape still counts as a
   *  report. */
  note(key: AttemptKey, fraction: unknown, message: unknown): void {
    this.#newest.set(key, {
      key,
      ...(typeof fraction === "number" && Number.isFinite(fraction)
        ? { fraction: Math.min(1, Math.max(0, fraction)) }
        : {}),
      ...(message === undefined || message === null ? {} : { message: textOf(message) }),
    });
    if (!this.#isResting) this.#flush();
  }

  drop(key: AttemptKey): void {
    this.#newest.delete(key);
  }

  #flush(): void {
    this.#isResting = this.#newest.size > 0;
    if (!this.#isResting) return;
    this.#pass([...this.#newest.values()]);
    this.#newest.clear();
    this.#clock.after(limits.progressMs, () => this.#flush(), { unref: true });
  }
}

const whyAborted: Readonly<Record<AbortReason | "timeout", string>> = {
  revoked: "the leader revoked the attempt",
  lease: "the lease could not be renewed in time",
  lapsed: "the leader reassigned the attempt",
  fenced: "another process joined under the agent's id",
  stopping: "the agent was stopped",
  timeout: "the attempt ran longer than the task's timeoutMs",
};

function abortError(reason: AbortReason | "timeout"): DOMException {
  return new DOMException(whyAborted[reason], "AbortError");
}
