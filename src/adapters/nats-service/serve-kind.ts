// A kind of tasks as a NATS service: each request becomes a task, and the task's result is the reply. The task has a
// deadline at the request's time-out: a server that is killed leaves no task that runs on for nobody.

import { textOrBase64 } from "../../agent/result-text.ts";
import type { Swarm } from "../../client/swarm.ts";
import { TaskFailedError } from "../../client/task-errors.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import type { Clock } from "../../clock.ts";
import { BackpressureError, BudgetExceededError, messageOf, WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { isInbox } from "../../protocol/subjects.ts";
import type { EndpointCounts } from "./micro-service.ts";

/** One request of a NATS program. */
export interface ServiceRequest {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Undefined: the sender wants no reply. */
  readonly reply: string | undefined;
  readonly header: (name: string) => string | undefined;
  /** Sends a message to the reply inbox.
   *  @throws InvalidMessageError when it is too large, or the connection is closed */
  readonly respond: (data: Uint8Array, headers?: Readonly<Record<string, string>>) => void;
}

export interface ServeKindOptions {
  readonly swarm: Swarm;
  readonly kind: string;
  /** Longest time from the request to the reply, ms. */
  readonly timeoutMs: number;
  readonly counts: EndpointCounts;
  readonly clock: Clock;
}

/** Answers requests, at most `limits.servedRequestsMax` at once. */
export class KindServer {
  readonly #options: ServeKindOptions;
  readonly #open = new Set<Promise<void>>();

  constructor(options: ServeKindOptions) {
    this.#options = options;
  }

  /** Never throws. */
  take(request: ServiceRequest): void {
    const { counts, clock } = this.#options;
    if (request.reply === undefined || !isInbox(request.reply))
      return counts.served(0, "a message without a reply inbox was ignored: send a request");
    if (this.#open.size >= limits.servedRequestsMax) {
      const busy = new BackpressureError(`${this.#open.size} requests are open`, limits.servedRetryMs);
      return this.#answer(request, refusalOf(busy), 0);
    }
    const startedAt = clock.monotonicMs();
    const answered = this.#run(request)
      .catch(refusalOf)
      .then((answer) => this.#answer(request, answer, clock.monotonicMs() - startedAt));
    this.#open.add(answered);
    void answered.finally(() => this.#open.delete(answered));
  }

  /** Resolves when all open requests are answered. */
  async idle(): Promise<void> {
    await Promise.all(this.#open);
  }

  async #run(request: ServiceRequest): Promise<ServiceAnswer> {
    const { swarm, kind, timeoutMs, clock } = this.#options;
    const isStreamed = isYes(request.header("Waggle-Stream"));
    const payload = textOrBase64(request.data);
    const deadline = clock.now() + timeoutMs;
    const submitted = { kind, payload, deadline, ...(isStreamed ? { stream: true } : {}) };
    const task = await swarm.submit(submitted, { failFast: true, timeoutMs });
    const ended = new AbortController();
    const streamed = isStreamed ? passOn(task, request, ended.signal) : undefined;
    try {
      const result = await task.result({ timeoutMs: timeoutMs + limits.servedGraceMs });
      await streamed;
      return { data: result.bytes(), headers: { "Waggle-Task": task.id } };
    } finally {
      ended.abort();
    }
  }

  #answer(request: ServiceRequest, answer: ServiceAnswer, processingMs: number): void {
    const { counts } = this.#options;
    try {
      request.respond(answer.data, answer.headers);
      counts.served(processingMs, answer.headers["Nats-Service-Error"]);
    } catch (error) {
      counts.served(processingMs, messageOf(error));
    }
  }
}

function isYes(header: string | undefined): boolean {
  return header !== undefined && /^(?:1|true|yes)$/i.test(header);
}

/** Sends each chunk as a reply. Never rejects: the last reply has the whole result. */
async function passOn(task: TaskHandle, { respond }: ServiceRequest, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of task.chunks({ signal }))
      respond(chunk.bytes(), {
        "Waggle-Task": task.id,
        "Waggle-Attempt": String(chunk.attempt),
        "Waggle-Chunk": String(chunk.index),
      });
  } catch {
    return; // the connection is closed, or the wait for the result reports the error
  }
}

interface ServiceAnswer {
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a requester learns of an error. */
export interface ServiceRefusal {
  /** As in HTTP. */
  readonly code: number;
  /** The stable code. */
  readonly error: string;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

export function refusalFor(error: unknown): ServiceRefusal {
  const hasPause = error instanceof BackpressureError || error instanceof BudgetExceededError;
  return {
    code: statusOf(error),
    error: error instanceof WaggleError ? error.code : "WAGGLE_INVARIANT",
    message: messageOf(error),
    retryAfterMs: hasPause ? error.retryAfterMs : undefined,
  };
}

function refusalOf(cause: unknown): ServiceAnswer {
  const { code, error, message, retryAfterMs } = refusalFor(cause);
  const task = Reflect.get(Object(cause), "taskId");
  return {
    data: new Uint8Array(),
    headers: {
      "Nats-Service-Error": `${error}: ${message}`,
      "Nats-Service-Error-Code": String(code),
      ...(typeof task === "string" ? { "Waggle-Task": task } : {}),
      ...(retryAfterMs === undefined ? {} : { "Retry-After": String(Math.ceil(retryAfterMs / 1_000)) }),
    },
  };
}

/** The status of an error, as in HTTP. */
function statusOf(error: unknown): number {
  if (error instanceof TaskFailedError) return error.outcome.state === "failed" ? 400 : 500;
  if (!(error instanceof WaggleError)) return 500;
  switch (error.code) {
    case "WAGGLE_INVALID_MESSAGE":
    case "WAGGLE_INVALID_VALUE":
      return 400;
    case "WAGGLE_FORBIDDEN":
      return 403;
    case "WAGGLE_NO_CAPABLE_AGENT":
      return 404;
    case "WAGGLE_BACKPRESSURE":
    case "WAGGLE_BUDGET_EXCEEDED":
    case "WAGGLE_OVER_BUDGET":
      return 429;
    case "WAGGLE_NO_LEADER":
    case "WAGGLE_UNREACHABLE":
    case "WAGGLE_OUTCOME_UNKNOWN":
      return 503;
    case "WAGGLE_TASK_EXPIRED":
    case "WAGGLE_WAIT_TIMED_OUT":
      return 504;
    default:
      return 500;
  }
}
