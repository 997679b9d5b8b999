// A kind of tasks as an agent of the Synadia Agent Protocol: each prompt becomes a task, and the task's chunks and
// result are the answer. As in serve-kind.ts the task has a deadline. So a killed server leaves no task that runs on
// for nobody.
//
// Chunks are sent as they come. An attempt that fails after its first chunk cannot be taken back, so the answer then
// ends with an error, although the task goes on.

import { textOrBase64 } from "../../agent/result-text.ts";
import type { ResultChunk } from "../../client/chunk-log.ts";
import type { Swarm } from "../../client/swarm.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import type { TaskResult } from "../../client/task-result.ts";
import type { Clock } from "../../clock.ts";
import { headOf } from "../../cut-text.ts";
import { BackpressureError, InvalidMessageError, messageOf, WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { isInbox } from "../../protocol/subjects.ts";
import type { EndpointCounts } from "../nats-service/micro-service.ts";
import { refusalFor, type ServiceRequest } from "../nats-service/serve-kind.ts";
import { type Prompt, readPrompt, writeAck, writeRefusal, writeResponse, writeWorking } from "./messages.ts";

export interface PromptServerOptions {
  readonly swarm: Swarm;
  readonly kind: string;
  /** Longest time from the prompt to the end of the answer, ms. */
  readonly timeoutMs: number;
  readonly counts: EndpointCounts;
  readonly clock: Clock;
}

/** Answers prompts, at most `limits.servedRequestsMax` at once. */
export class PromptServer {
  readonly #options: PromptServerOptions;
  readonly #open = new Set<Promise<void>>();

  constructor(options: PromptServerOptions) {
    this.#options = options;
  }

  /** Never throws. */
  take(request: ServiceRequest): void {
    const { counts } = this.#options;
    if (request.reply === undefined || !isInbox(request.reply))
      return counts.served(0, "a message without a reply inbox was ignored: send a request");
    const answered = this.#serve(request).catch((error: unknown) => counts.served(0, messageOf(error)));
    this.#open.add(answered);
    void answered.finally(() => this.#open.delete(answered));
  }

  /** Resolves when all open prompts are answered. */
  async idle(): Promise<void> {
    await Promise.all(this.#open);
  }

  /** @throws InvalidMessageError when a message cannot be sent */
  async #serve(request: ServiceRequest): Promise<void> {
    const { counts, clock } = this.#options;
    const startedAt = clock.monotonicMs();
    const answer = new PromptAnswer(request, clock);
    let error: string | undefined;
    try {
      const prompt = this.#promptIn(request);
      answer.acknowledge();
      await this.#run(prompt, answer);
    } catch (cause) {
      error = answer.refuse(cause);
    } finally {
      answer.end();
    }
    counts.served(clock.monotonicMs() - startedAt, error);
  }

  /** @throws InvalidMessageError, BackpressureError */
  #promptIn({ data }: ServiceRequest): Prompt {
    if (this.#open.size >= limits.servedRequestsMax)
      throw new BackpressureError(`${limits.servedRequestsMax} prompts are open`, limits.servedRetryMs);
    const read = readPrompt(data);
    if (!read.ok) throw new InvalidMessageError(read.message);
    if ((read.value.attachments?.length ?? 0) > 0)
      throw new InvalidMessageError("attachments: this agent takes none");
    return read.value;
  }

  /** @throws the errors of the submission and of the task */
  async #run({ prompt }: Prompt, answer: PromptAnswer): Promise<void> {
    const { swarm, kind, timeoutMs, clock } = this.#options;
    const request = { kind, payload: prompt, stream: true, deadline: clock.now() + timeoutMs };
    const task = await swarm.submit(request, { failFast: true, timeoutMs });
    const ended = new AbortController();
    const streamed = passOn(task, answer, ended.signal);
    streamed.catch(() => undefined); // awaited below, unless the task fails first
    try {
      const result = await task.result({ timeoutMs: timeoutMs + limits.servedGraceMs });
      await streamed;
      answer.complete(result);
    } finally {
      ended.abort();
    }
  }
}

/** Sends the chunks of the first attempt, up to the first gap. */
async function passOn(task: TaskHandle, answer: PromptAnswer, signal: AbortSignal): Promise<void> {
  let next: Pick<ResultChunk, "attempt" | "index"> | undefined;
  for await (const chunk of task.chunks({ signal })) {
    next ??= { attempt: chunk.attempt, index: 0 };
    if (chunk.attempt !== next.attempt || chunk.index !== next.index || chunk.encoding !== undefined) return;
    answer.send(chunk.data);
    next = { attempt: chunk.attempt, index: chunk.index + 1 };
  }
}

/** The messages of one answer. */
class PromptAnswer {
  readonly #request: ServiceRequest;
  readonly #clock: Clock;
  #sent = "";
  #cancelTimer: () => void = () => undefined;

  constructor(request: ServiceRequest, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
  }

  acknowledge(): void {
    this.#request.respond(writeAck());
    this.#keepAlive();
  }

  /** A part of the answer, in messages that the server takes. */
  send(text: string): void {
    for (let rest = text; rest !== ""; ) {
      const part = headOf(rest, limits.promptPartCharactersMax);
      this.#request.respond(writeResponse(part));
      rest = rest.slice(part.length);
    }
    this.#sent += text;
  }

  /** The rest of the answer. @throws Error when other text was sent before */
  complete(result: TaskResult): void {
    const bytes = result.bytes();
    const text = textOrBase64(bytes);
    if (typeof text !== "string") {
      const content = Buffer.from(bytes).toString("base64");
      return this.#request.respond(writeResponse("", [{ filename: "result", content }]));
    }
    if (text.startsWith(this.#sent)) return this.send(text.slice(this.#sent.length));
    throw new WaggleError(
      "WAGGLE_TASK_FAILED",
      "an attempt failed after the beginning of its answer was sent; " +
        `the whole answer is the result of task ${result.taskId}`,
    );
  }

  /** @returns the error, for the figures */
  refuse(cause: unknown): string {
    const { code, error, message, retryAfterMs } = refusalFor(cause);
    const status = KNOWN_CODES.has(code) ? code : 500;
    const description = `${error}: ${message}`;
    this.#request.respond(writeRefusal(error.toLowerCase(), message, retryAfterMs), {
      "Nats-Service-Error": description,
      "Nats-Service-Error-Code": String(status),
    });
    return description;
  }

  /** The terminator: no data, and no headers. */
  end(): void {
    this.#cancelTimer();
    this.#request.respond(new Uint8Array());
  }

  #keepAlive(): void {
    this.#cancelTimer = this.#clock.after(limits.promptWorkingMs, () => {
      try {
        this.#request.respond(writeWorking());
        this.#keepAlive();
      } catch {
        return; // the connection is closed: the next message of the answer reports it
      }
    });
  }
}

/** The codes of the protocol. */
const KNOWN_CODES: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 429, 500]);
