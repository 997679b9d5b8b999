// Runs handlers for attempts, up to a maximum at a time, and reports how each ended. Knows neither leader nor
// leases: the session says when to abort. Never abandons a running handler, because a running handler may still
// have effects.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import {
  type Handler,
  type HandlerContext,
  type HandlerLog,
  HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "./handler.ts";
import type {
  AbortReason,
  AttemptEnd,
  AttemptKey,
  AttemptOrder,
  ProgressReport,
  SessionOrder,
} from "./link.ts";
import { LogBuffer } from "./log-buffer.ts";
import { resultText } from "./result-text.ts";
import type { AcquireOptions, Slot, Slots } from "./slots.ts";
import { isA, lineOf, textOf, wordsOf } from "./words.ts";

export interface RunnerDeps {
  readonly handler: Handler;
  readonly slots: Slots;
  /** Maximum number of concurrent handlers, at least 1. */
  readonly maxConcurrent: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Sends ends and progress to the session, with many attempts per message. */
  readonly tell: (order: SessionOrder) => void;
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
  readonly #running = new Map<AttemptKey, RunningAttempt>();
  readonly #waiting = new Map<AttemptKey, { readonly order: AttemptOrder; readonly receivedAt: number }>();
  readonly #progress: ProgressBuffer;
  readonly #logs: LogBuffer;
  readonly #counts = { completed: 0, failed: 0, infrastructure: 0, invalid: 0, aborted: 0 };
  #ends: AttemptEnd[] = [];
  #idle: (() => void)[] = [];

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#progress = new ProgressBuffer(deps.clock, (reports) => deps.tell({ type: "progress", reports }));
    this.#logs = new LogBuffer(deps.clock, (written) => deps.tell({ type: "log", ...written }));
  }

  counts(): RunnerCounts {
    return { running: this.#running.size, waiting: this.#waiting.size, ...this.#counts };
  }

  /** Starts attempts, or queues them until a handler is free. */
  run(orders: readonly AttemptOrder[]): void {
    const receivedAt = this.#deps.clock.monotonicMs();
    for (const order of orders) this.#waiting.set(order.key, { order, receivedAt });
    this.#startWaiting();
  }

  /** Aborts handlers. Attempts that have not started end at once. */
  abort(keys: readonly AttemptKey[], reason: AbortReason): void {
    for (const key of keys) {
      if (this.#waiting.delete(key))
        this.#report({ key, outcome: "infrastructure", error: whyAborted[reason], tokens: 0 });
      else this.#running.get(key)?.abort(reason);
    }
  }

  abortAll(reason: AbortReason): void {
    this.abort([...this.#waiting.keys(), ...this.#running.keys()], reason);
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #startWaiting(): void {
    for (const [key, { order, receivedAt }] of this.#waiting) {
      if (this.#running.size >= this.#deps.maxConcurrent) return;
      this.#waiting.delete(key);
      const attempt = new RunningAttempt(this.#deps, order, { progress: this.#progress, logs: this.#logs });
      this.#running.set(key, attempt);
      void attempt.run(receivedAt).then((end) => this.#ended(end));
    }
  }

  #ended(end: AttemptEnd): void {
    this.#running.delete(end.key);
    this.#progress.drop(end.key);
    this.#logs.flush(end.key);
    this.#report(end);
    this.#startWaiting();
    if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #report(end: AttemptEnd): void {
    this.#counts[end.outcome] += 1;
    if (this.#ends.length === 0) this.#deps.clock.soon(() => this.#tellEnds());
    this.#ends.push(end);
  }

  #tellEnds(): void {
    const ends = this.#ends;
    this.#ends = [];
    this.#deps.tell({ type: "ended", ends });
  }
}

/** One call of the handler, and its context. */
class RunningAttempt implements HandlerContext {
  readonly task: HandlerTask;
  readonly progress: HandlerContext["progress"];
  readonly reportTokens: HandlerContext["reportTokens"];
  readonly acquire: HandlerContext["acquire"];
  readonly #deps: RunnerDeps;
  readonly #order: AttemptOrder;
  readonly #logs: LogBuffer;
  #controller: AbortController | undefined;
  #logger: Logger | undefined;
  #log: HandlerLog | undefined;
  #abortedFor: AbortReason | "timeout" | undefined;
  /** As reported; may exceed the maximum that counts. */
  #tokens: number | undefined;
  #slots: AttemptSlots | undefined;

  constructor(
    deps: RunnerDeps,
    order: AttemptOrder,
    { progress, logs }: { readonly progress: ProgressBuffer; readonly logs: LogBuffer },
  ) {
    this.#deps = deps;
    this.#order = order;
    this.#logs = logs;
    this.task = new HandlerTask(order);
    this.progress = (fraction, message) => progress.note(order.key, fraction, message);
    this.reportTokens = (count) => {
      if (!Number.isSafeInteger(count) || count < 0)
        throw new RangeError("tokens are counted in integers ≥ 0");
      this.#countTokens(count);
    };
    this.acquire = async (resources, options) => {
      this.#slots ??= new AttemptSlots(deps.slots, order.key);
      return await this.#slots.acquire(resources, options, this.signal);
    };
  }

  // Created on first use: most handlers of short tasks use neither.
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
      this.#logs.write(
        key,
        isA(text, Uint8Array)
          ? decoder.decode(text, { stream: true })
          : typeof text === "string"
            ? text
            : textOf(text),
      );
    const log = (...values: unknown[]) => {
      const line = lineOf(values);
      this.#logs.write(key, `${line}\n`);
      this.#tellLogger("info", line);
    };
    return Object.assign(log, { write });
  }

  #countTokens(count: number): void {
    const { tokensPerAttemptMax: most } = limits;
    const before = this.#tokens ?? 0;
    this.#tokens = before + count;
    if (before <= most && this.#tokens > most)
      this.#tellLogger("warn", `${this.#tokens} tokens were reported; at most ${most} count per attempt`);
  }

  abort(reason: AbortReason | "timeout"): void {
    if (this.#abortedFor !== undefined) return;
    this.#abortedFor = reason;
    this.#controller?.abort(abortError(reason));
  }

  /** Never rejects, whatever the handler throws or returns: a rejection would block the agent's capacity for
   *  good. */
  async run(receivedAt: number): Promise<AttemptEnd> {
    const { clock, handler } = this.#deps;
    const startedAt = clock.monotonicMs();
    // The leader's timeout counts from the assignment. The agent only knows the time of arrival.
    const leftMs = Math.max(0, this.#order.timeoutMs - (startedAt - receivedAt));
    const cancelTimeout = clock.after(leftMs, () => this.abort("timeout"), { unref: true });
    const verdict = await this.#verdictOf(handler);
    cancelTimeout();
    const forgotten = this.#slots?.end() ?? [];
    if (forgotten.length > 0)
      this.#tellLogger("warn", "the handler ended without releasing all its slots; releasing them", {
        resources: forgotten,
      });
    const latencyMs = clock.monotonicMs() - startedAt;
    return {
      key: this.#order.key,
      ...verdict,
      ...(this.#tokens === undefined ? {} : { tokens: Math.min(this.#tokens, limits.tokensPerAttemptMax) }),
      latencyMs,
    };
  }

  async #verdictOf(handler: Handler): Promise<Omit<AttemptEnd, "key">> {
    try {
      return { outcome: "completed", ...resultText(await handler(this.task, this)) };
    } catch (error) {
      return { outcome: this.#classOf(error), error: this.#explain(error) };
    }
  }

  /** The logger is user code as well, and may throw. */
  #tellLogger(level: "info" | "warn", text: string, fields: object = {}): void {
    try {
      this.logger[level](fields, text);
    } catch {
      return; // a log line that cannot be written must not fail the attempt
    }
  }

  /** An error thrown after an abort says nothing about the work before. */
  #classOf(error: unknown): "failed" | "infrastructure" | "invalid" | "aborted" {
    if (isA(error, InvalidInputError)) return "invalid";
    if (this.#abortedFor === "timeout") return "failed";
    if (this.#abortedFor !== undefined) return "aborted";
    return isA(error, InfrastructureError) ? "infrastructure" : "failed";
  }

  #explain(error: unknown): string {
    if (this.#abortedFor !== undefined) return whyAborted[this.#abortedFor];
    return wordsOf(error);
  }
}

/** The slots of one attempt, released when the attempt ends. */
class AttemptSlots {
  readonly #slots: Slots;
  readonly #holder: string;
  readonly #held = new Set<Slot>();
  readonly #over = new AbortController();

  constructor(slots: Slots, holder: string) {
    this.#slots = slots;
    this.#holder = holder;
  }

  async acquire(
    resources: string | readonly string[],
    options: AcquireOptions | undefined,
    signal: AbortSignal,
  ): Promise<Slot> {
    const attempt = { holder: this.#holder, signals: [signal, this.#over.signal] };
    const slot = await this.#slots.acquire(resources, options, attempt);
    for (const held of this.#held) if (held.isReleased) this.#held.delete(held);
    this.#held.add(slot);
    if (this.#over.signal.aborted) void slot.release(); // granted at the moment the handler ended
    return slot;
  }

  /** Gives up pending requests and releases held slots. @returns the resources that were still held */
  end(): string[] {
    this.#over.abort(new DOMException("the handler has ended", "AbortError"));
    const forgotten = [...this.#held].filter((slot) => !slot.isReleased);
    for (const slot of forgotten) void slot.release();
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
