// What a handler is given and what it may answer: the interface between this package and the code that does
// the work. Not how handlers are run (runner.ts). The one thing to know: what is thrown says whose fault it was.

import { Buffer } from "node:buffer";
import type { Logger } from "pino";
import { messageOf } from "../errors.ts";
import type { AcquireOptions, Slot } from "./slots.ts";

/** Does one attempt of a task. What it returns is the task's result: text as it is, bytes as base64, any other
 *  value as JSON, nothing as no result. What it throws is the attempt's failure: `InvalidInputError` ends the
 *  task, `InfrastructureError` has it run elsewhere at no cost, anything else counts against the agent. Whatever is
 *  thrown once `context.signal` was aborted, the attempt had begun, and counts as one. */
export type Handler = (task: HandlerTask, context: HandlerContext) => unknown;

/** The attempt's input is at fault: trying again is no use, and the task ends as failed. */
export class InvalidInputError extends Error {
  override readonly name = "InvalidInputError";
}

/** The surroundings are at fault (a quota, a network, a missing program): neither task nor agent is blamed, and no
 *  attempt is counted, not even of a task with `maxAttempts: 1`. Throw it where nothing was done that must not be
 *  done again. */
export class InfrastructureError extends Error {
  override readonly name = "InfrastructureError";
}

export interface HandlerContext {
  readonly task: HandlerTask;
  /** Aborted when the attempt was cancelled or given to another, takes too long, lost its lease, or the agent
   *  stops. Whatever is returned or thrown after that hardly matters; ending soon does: until then the attempt
   *  keeps its place. */
  readonly signal: AbortSignal;
  /** Writes a line to the attempt's log, with values as `console.log` takes them. The agent keeps the last 16 KiB while
   *  it lives: `waggle task ID` shows them to whoever may read the task. The line also goes to the agent's logger, at
   *  level `info`. Never throws. */
  readonly log: HandlerLog;
  /** The agent's logger, with the task's id and attempt in each line. Silent unless the agent was given one. Not shown
   *  by `waggle task`. */
  readonly logger: Logger;
  /** Tells waiting clients how far it is, and resets the task's stall limit. Never throws: a value of a wrong type is
   *  a report all the same.
   *  @param fraction in [0, 1]; a number outside is moved to the border, what is no finite number counts as absent
   *  @param message at most 1,024 characters, the rest is cut; what is no text is shown as `console.log` shows it */
  readonly progress: (fraction?: number, message?: string) => void;
  /** Acquires slots of resources for this attempt, all of them or none, in competition with every agent of the
   *  swarm. Slots that the handler forgets are released when it ends, which the log says. An attempt that holds
   *  something may acquire only what comes later in name order. Rejects as `Agent.acquire` does, and with an
   *  AbortError when the attempt's `signal` is aborted. */
  readonly acquire: (resources: string | readonly string[], options?: AcquireOptions) => Promise<Slot>;
  /** Adds tokens spent by this attempt. They are charged to its project's budget, however the attempt ends; one that
   *  reports none is charged what was estimated. At most 400,000,000 count. @throws RangeError unless `count` is an
   *  integer ≥ 0 */
  readonly reportTokens: (count: number) => void;
}

export interface HandlerLog {
  (...values: unknown[]): void;
  /** Adds text, or bytes of UTF-8, as they are, to the attempt's log alone: `child.stderr.on("data", log.write)`. */
  readonly write: (text: string | Uint8Array) => void;
}

/** A task as its handler sees it. */
export class HandlerTask {
  readonly id: string;
  /** From 1; more than 1 means that it was tried before. */
  readonly attempt: number;
  /** Attempts of the task that may begin; 1: it is to be done at most once. */
  readonly maxAttempts: number;
  readonly kind: string;
  readonly project: string;
  readonly user: string;
  /** As submitted: text, or base64 when `encoding` says so. */
  readonly payload: string;
  readonly encoding: "base64" | undefined;

  constructor(of: {
    readonly task: string;
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly kind: string;
    readonly project: string;
    readonly user: string;
    readonly payload: string;
    readonly encoding?: "base64" | undefined;
  }) {
    this.id = of.task;
    this.attempt = of.attempt;
    this.maxAttempts = of.maxAttempts;
    this.kind = of.kind;
    this.project = of.project;
    this.user = of.user;
    this.payload = of.payload;
    this.encoding = of.encoding;
  }

  /** The payload as text, decoded where it is base64. */
  text(): string {
    return this.encoding === undefined ? this.payload : Buffer.from(this.payload, "base64").toString();
  }

  /** The payload's bytes, decoded where it is base64. */
  bytes(): Uint8Array {
    return Buffer.from(this.payload, this.encoding ?? "utf8");
  }

  /** The payload as JSON. @throws InvalidInputError when it is none, which ends the task */
  json(): unknown {
    try {
      return JSON.parse(this.text());
    } catch (cause) {
      throw new InvalidInputError(`the payload is not JSON: ${messageOf(cause)}`, { cause });
    }
  }
}
