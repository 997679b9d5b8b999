// The interface between this package and user code that does the work: input, context and result of a handler.
// runner.ts runs handlers. The class of a thrown error says what is at fault.

import { Buffer } from "node:buffer";
import type { Logger } from "pino";
import type { InvalidValueError } from "../errors.ts";
import { messageOf } from "../errors.ts";
import type { HoldClaim } from "../protocol/schemas.ts";
import { askedHold, type InfrastructureErrorOptions } from "./hold-options.ts";
import type { AcquireOptions, Slot } from "./slots.ts";

/** Runs one attempt of a task. The return value is the result: a string as is, bytes as base64, any other value
 *  as JSON, undefined as no result. A generator emits each value that it yields (`HandlerContext.emit`); without a
 *  return value its result is all it yielded: text and bytes joined, else a JSON array with bytes as base64. A
 *  thrown error fails the attempt. `InvalidInputError` ends the task. `InfrastructureError` requeues the task
 *  without counting the attempt. Any other error counts against the agent. After `context.signal` was aborted, the
 *  attempt counts, whatever is thrown. */
export type Handler = (task: HandlerTask, context: HandlerContext) => unknown;

/** The input is at fault: the task ends as failed, without a retry. */
export class InvalidInputError extends Error {
  override readonly name = "InvalidInputError";
}

/** The environment is at fault (a quota, a network, a missing program). Blames neither task nor agent, and the
 *  attempt does not count, even with `maxAttempts: 1`. Throw it only when nothing was done that must not be
 *  repeated. Counts also as the `cause` of the thrown error, at any depth.
 *
 *  With a time (`retryAfterMs` or `until`) the agent, its type or a resource is on hold until then. Without a
 *  time, three in a row put the agent on hold, or its type if several agents were refused. The constructor never
 *  throws: a wrong option is logged, also in the attempt's log, and places no hold.
 *
 *      throw new InfrastructureError("quota used up", { retryAfterMs: 30_000, scope: "type" }); */
export class InfrastructureError extends Error {
  override readonly name = "InfrastructureError";
  /** The hold that the report asks for. */
  readonly hold: HoldClaim;
  /** Why the options place no hold: `WAGGLE_INVALID_VALUE`, with the option as `field`. */
  readonly wrongHold: InvalidValueError | undefined;

  constructor(message?: string, options: InfrastructureErrorOptions = {}) {
    super(
      message,
      typeof options === "object" && options !== null && "cause" in options ? { cause: options.cause } : {},
    );
    const { hold, wrong } = askedHold(options);
    this.hold = hold;
    this.wrongHold = wrong;
  }
}

export interface HandlerContext {
  readonly task: HandlerTask;
  /** Aborted when the attempt is cancelled, revoked, too slow, or without a lease, and when the agent stops.
   *  End soon after: until then the attempt occupies capacity. The result no longer matters. */
  readonly signal: AbortSignal;
  /** Writes a line to the attempt's log, formatted as `console.log` does. The agent keeps the last 16 KiB until
   *  it ends; `waggle task ID` shows them to readers of the task. The line also goes to the agent's logger at
   *  level `info`. Never throws. */
  readonly log: HandlerLog;
  /** The agent's logger, with the task id and attempt number in each line. Silent without a configured logger.
   *  `waggle task` does not show its lines. */
  readonly logger: Logger;
  /** Reports progress to waiting clients, and resets the task's stall limit. Never throws: values of a wrong
   *  type still count as a report.
   *  @param fraction in [0, 1]; clamped; ignored unless a finite number
   *  @param message at most 1,024 characters, longer text is cut; other values are formatted as `console.log`
   *    does */
  readonly progress: (fraction?: number, message?: string) => void;
  /** Sends a part of the result to the readers of the task at once: a string as is, bytes as base64, any other value as
   *  JSON. Chunks are not journaled: the handler still returns the whole result. Counts as progress. Chunks of a task
   *  that was submitted without `stream` go nowhere.
   *  @throws InvalidMessageError (`field: "chunk"`) for a chunk of more than 128 KiB, or a value that JSON cannot
   *    hold */
  readonly emit: (chunk: unknown) => void;
  /** Acquires slots of resources for this attempt, all or none, in competition with all agents of the swarm.
   *  When the handler ends, unreleased slots are released and logged. An attempt that holds slots may acquire
   *  only resources later in name order. The task's project and user are those of the slots. Tokens reported by
   *  `slot.report`, or else the `tokens` of the options, add to the attempt's: its own reservation covers them.
   *  Rejects as `Agent.acquire` does, and with an AbortError when `signal` is aborted. */
  readonly acquire: (resources: string | readonly string[], options?: AcquireOptions) => Promise<Slot>;
  /** Adds tokens used by this attempt. The project's budget is charged with the sum, however the attempt ends;
   *  an attempt without a report is charged the estimate. At most 400,000,000 count per attempt.
   *  @throws InvalidMessageError (`field: "tokens"`) unless `count` is a whole number ≥ 0 */
  readonly reportTokens: (count: number) => void;
}

export interface HandlerLog {
  (...values: unknown[]): void;
  /** Adds text or UTF-8 bytes unchanged to the attempt's log only: `child.stderr.on("data", log.write)`. */
  readonly write: (text: string | Uint8Array) => void;
}

const NO_ATTRIBUTES: Readonly<Record<string, string>> = Object.freeze({});

/** A task as its handler sees it. */
export class HandlerTask {
  readonly id: string;
  /** Number of the attempt, from 1; above 1 after an earlier attempt. */
  readonly attempt: number;
  /** Maximum number of attempts. 1: the task must run at most once. */
  readonly maxAttempts: number;
  readonly kind: string;
  readonly project: string;
  readonly user: string;
  /** As submitted: text, or base64 when `encoding` is set. */
  readonly payload: string;
  readonly encoding: "base64" | undefined;
  /** The submitter wants chunks of the result (`HandlerContext.emit`). */
  readonly stream: boolean;
  /** The submitter's attributes by name; empty without any. */
  readonly attributes: Readonly<Record<string, string>>;
  /** W3C Trace Context for calls that the handler makes: of the attempt's span, or of the submitter without
   *  OpenTelemetry. Undefined for a task without a trace. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;

  constructor(of: {
    readonly task: string;
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly kind: string;
    readonly project: string;
    readonly user: string;
    readonly payload: string;
    readonly encoding?: "base64" | undefined;
    readonly stream?: true | undefined;
    readonly attributes?: Readonly<Record<string, string>> | undefined;
    readonly traceparent?: string | undefined;
    readonly tracestate?: string | undefined;
  }) {
    this.id = of.task;
    this.attempt = of.attempt;
    this.maxAttempts = of.maxAttempts;
    this.kind = of.kind;
    this.project = of.project;
    this.user = of.user;
    this.payload = of.payload;
    this.encoding = of.encoding;
    this.stream = of.stream === true;
    this.attributes = of.attributes ?? NO_ATTRIBUTES;
    this.traceparent = of.traceparent;
    this.tracestate = of.tracestate;
  }

  /** The payload as text, decoded from base64 if necessary. */
  text(): string {
    return this.encoding === undefined ? this.payload : Buffer.from(this.payload, "base64").toString();
  }

  /** The payload's bytes, decoded from base64 if necessary. */
  bytes(): Uint8Array {
    return Buffer.from(this.payload, this.encoding ?? "utf8");
  }

  /** The payload parsed as JSON. @throws InvalidInputError when the payload is not JSON, which ends the task */
  json(): unknown {
    try {
      return JSON.parse(this.text());
    } catch (cause) {
      throw new InvalidInputError(`the payload is not JSON: ${messageOf(cause)}`, { cause });
    }
  }
}
