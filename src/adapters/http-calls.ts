// Calls of a model over HTTP, under a lease: the answer as JSON, or as server-sent events that are read in passing.

import { limits } from "../limits.ts";
import type { ModelCall, ModelCalls } from "./model-calls.ts";
import { errorInEvent } from "./refusal.ts";
import { laterUsage, type TokenUsage, wireUsage } from "./token-usage.ts";

/** Makes one HTTP request for a call. The slot is held until the last byte has arrived, read or not.
 *  @throws as `ModelCalls.open`; what `send` throws; InfrastructureError inside a handler after a refusal */
export async function sendHeld(
  calls: ModelCalls,
  call: ModelCall,
  send: (signal: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const lease = await calls.open(call);
  try {
    const response = await lease.race(send(lease.signal));
    if (!response.ok || response.body === null) {
      calls.refused(lease, response);
      return response;
    }
    if (isEventStream(response)) {
      const events = new EventReader();
      const body = calls.readAhead<Uint8Array>(lease, response.body, {
        usageOf: (bytes) => events.read(bytes),
        errorOf: () => events.error,
        isLast: () => events.isOver,
        isAnswer: () => events.hasAnswered,
        strategy: new ByteLengthQueuingStrategy({ highWaterMark: limits.bytesReadAheadMax }),
      });
      return new Response(body, response);
    }
    lease.note(wireUsage(parsed(await lease.race(response.clone().text()))));
    lease.succeed();
    return response;
  } catch (error) {
    throw calls.failed(lease, error);
  }
}

/** The fields of a request that matter here. A stored prompt names its model at the provider.
 *  @param body text, or its UTF-8 bytes
 *  @returns undefined for a body that is not JSON of a call */
export function callIn(
  body: unknown,
): { readonly model: string | undefined; readonly prompt: object } | undefined {
  const text = body instanceof Uint8Array || body instanceof ArrayBuffer ? decoded(body) : body;
  const request = typeof text === "string" ? parsed(text) : undefined;
  if (typeof request !== "object" || request === null || Array.isArray(request)) return undefined;
  return { model: Reflect.get(request, "model") as string | undefined, prompt: request };
}

function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** Clients stop reading after such an event, before the connection ends. */
const lastEvent = /^(data: ?\[DONE\]|event: ?(message_stop|response\.(completed|incomplete|failed)))$/;

function isOfAnswer(line: string): boolean {
  return line !== "" && !line.startsWith(":") && !pings.test(line);
}

/** Anthropic's sign of life, and its data. */
const pings = /^(event: ?ping|data: ?\{ ?"type": ?"ping" ?\})$/;

/** Reads events in passing. The events of both providers have one line of JSON. */
class EventReader {
  readonly #decoder = new TextDecoder();
  #line = "";
  #isLast = false;
  #isOver = false;
  #hasAnswered = false;
  #error: unknown;

  /** That the last bytes report. */
  get error(): unknown {
    return this.#error;
  }

  /** Whether the last bytes held part of an answer: comments and pings only keep the connection open. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** True after the provider's last event. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** @returns the tokens that the events of these bytes report */
  read(bytes: Uint8Array): TokenUsage | undefined {
    const lines = (this.#line + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? "";
    this.#line = rest.length > limits.eventCharactersMax ? "" : rest;
    let found: TokenUsage | undefined;
    this.#error = undefined;
    // A long line that has not ended yet is part of an answer.
    this.#hasAnswered = lines.some(isOfAnswer) || isOfAnswer(rest);
    for (const line of lines) {
      if (line === "") this.#isOver ||= this.#isLast;
      else if (lastEvent.test(line)) this.#isLast = true;
      else if (line.startsWith("data:") && /"(usage|error)"/.test(line)) {
        const event = parsed(line.slice("data:".length));
        found = laterUsage(found ?? {}, wireUsage(event) ?? {});
        this.#error ??= errorInEvent(event);
      }
    }
    return found;
  }
}

function decoded(bytes: Uint8Array | ArrayBuffer): string {
  return new TextDecoder().decode(bytes);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // what is not JSON reports no tokens
  }
}
