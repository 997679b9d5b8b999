// A handler that posts each attempt to a URL: payload as the body, response as the result, verdict by status.
// - 2xx → completed · 400, 422 → invalid input · 429, 502, 503, 504, 529, no response → infrastructure
// - any other, including redirects → failed
//
// Status and headers decide. The body of an error only has words for the message, so it is read for a short time.
// A result that breaks off fails, because the endpoint has begun its work. No response does not count. The exception
// is a task with `maxAttempts: 1` whose request was sent completely: the endpoint may have done the work. Such a task
// gets a new connection. The endpoint might close a kept connection at the same moment, which would cost the task its
// only attempt.
//
// Used tokens: a number in the response header `waggle-tokens`, with any status. Other values count nothing,
// and the log reports them.
//
// Not `fetch`: it gives up after five minutes without a response, and an attempt may take as long as its task
// allows. Errors and logs never contain the URL's user, password and query.

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import * as z from "zod";
import { InvalidConfigError } from "../errors.ts";
import { limits } from "../limits.ts";
import { textEmitter } from "./chunk-buffer.ts";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "./handler.ts";
import { type HoldScopeOption, holdScope } from "./hold-options.ts";
import { readerOf, text } from "./options.ts";
import { textOrBase64 } from "./result-text.ts";
import { mayNameTime, retryAfterMs } from "./retry-after.ts";

export interface HttpOptions {
  /** `http://` or `https://`; a user and password become basic authorization. */
  readonly url: string;
  /** Added to each request. Take precedence over the default headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What a refusal with a time (status 429, 503 or 529) puts on hold. Default `agent`: the endpoint's quota is this
   *  agent's own. */
  readonly holdScope?: HoldScopeOption;
}

const readOptions = readerOf<HttpOptions>(
  {
    each: { url: text, headers: z.record(text, text), holdScope },
    required: ["url"],
    example: '{ url: "http://localhost:8080" }',
  },
  InvalidConfigError,
);

/** A handler that posts each attempt to `url`. Each request has a content type and the headers
 *  `waggle-task-id`, `waggle-attempt`, `waggle-kind`, `waggle-project` and `waggle-user`, percent-encoded where
 *  not plain ASCII.
 *
 *  Status 2xx completes; 400 and 422 mean invalid input; 429, 502, 503, 504, 529 and no response
 *  mean infrastructure; any other fails. A result that breaks off counts as an attempt. No response does not
 *  count, except for a task with `maxAttempts: 1` whose request was sent completely. With 429, 503 and 529, the
 *  headers `Retry-After` and `x-ratelimit-reset…` put the agent on hold until then.
 *  @throws InvalidConfigError naming the option; when the URL is not an HTTP URL */
export function httpHandler(given: HttpOptions): Handler {
  const { url: address, headers = {}, holdScope: scope } = readOptions("httpHandler", given);
  const url = parseUrl(address);
  const isSecure = url.protocol === "https:";
  const endpoint: Endpoint = {
    url,
    request: isSecure ? requestHttps : requestHttp,
    agent: isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true }),
    headers,
    place: `${url.origin}${url.pathname}`,
  };
  const { place } = endpoint;

  return async (task, { signal, emit, reportTokens, logger }) => {
    const stream = task.stream ? emit : undefined;
    const answer = await post(endpoint, task, { signal, stream }).catch((cause: unknown) => {
      throw signal.aborted ? signal.reason : cause;
    });
    const { tokens } = answer;
    if (/^\d{1,15}$/.test(tokens)) reportTokens(Number(tokens));
    else if (tokens !== "")
      logger.warn(
        `not counted as tokens: ${place} answered with the header waggle-tokens: ` +
          `${JSON.stringify(tokens.slice(0, limits.tokensLineCharactersMax))}; expected a whole number`,
      );
    return isFine(answer) ? resultOf(answer) : verdict(answer, place, scope);
  };
}

interface Endpoint {
  readonly url: URL;
  readonly request: typeof requestHttp;
  readonly agent: HttpAgent;
  readonly headers: Readonly<Record<string, string>>;
  /** For messages: without user, password and query. */
  readonly place: string;
}

interface Answer {
  readonly status: number;
  /** As sent by the endpoint, unchecked; empty without the header. */
  readonly tokens: string;
  /** The time that the headers of status 429, 503 or 529 name. */
  readonly retryAfterMs: number | undefined;
  readonly bytes: Uint8Array;
  /** The body was longer than the maximum. */
  readonly isCut: boolean;
}

/** @throws InfrastructureError without a response, if the attempt does not count; else Error */
async function post(
  endpoint: Endpoint,
  task: HandlerTask,
  { signal, stream }: { readonly signal: AbortSignal; readonly stream: HandlerContext["emit"] | undefined },
): Promise<Answer> {
  const response = await responseTo(endpoint, task, signal);
  const status = response.statusCode ?? 0;
  const body = isFine({ status })
    ? await read(response, stream).catch((cause: unknown) => {
        throw new Error(
          `${endpoint.place} answered ${status}, but the response broke off (${codeOf(cause)})`,
        );
      })
    : await readError(response);
  signal.throwIfAborted();
  return {
    status,
    tokens: String(response.headers["waggle-tokens"] ?? ""),
    retryAfterMs: mayNameTime(status) ? retryAfterMs(response.headers, Date.now()) : undefined,
    ...body,
  };
}

async function responseTo(
  { url, request: send, agent, headers, place }: Endpoint,
  task: HandlerTask,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const body = task.bytes();
  const isAtMostOnce = task.maxAttempts === 1;
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const request = send(url, {
      method: "POST",
      agent: isAtMostOnce ? false : agent,
      signal,
      headers: { ...headersOf(task), "content-length": body.length, ...headers },
    });
    let isSent = false;
    request.once("finish", () => {
      isSent = true;
    });
    request.once("response", resolve);
    request.on("error", (cause) => {
      const text = `no answer from ${place} (${codeOf(cause)})`;
      const mayBeDone = "the endpoint may have done the work, and the task has only one attempt";
      reject(
        isSent && isAtMostOnce
          ? new Error(`${text}: ${mayBeDone}`)
          : new InfrastructureError(text, { scope: "agent" }),
      );
    });
    request.end(body);
  });
}

type Body = Pick<Answer, "bytes" | "isCut">;

async function read(
  response: AsyncIterable<Uint8Array>,
  stream: HandlerContext["emit"] | undefined,
): Promise<Body> {
  const body = new BodyStart(limits.payloadBytesMax);
  const emitText = stream === undefined ? undefined : textEmitter(stream);
  for await (const chunk of response) {
    emitText?.(chunk);
    if (body.add(chunk)) break; // also closes the connection
  }
  return body.taken();
}

/** The words of an error, as far as they come in time. */
async function readError(response: IncomingMessage): Promise<Body> {
  const body = new BodyStart(limits.httpErrorBytes);
  const timer = setTimeout(() => response.destroy(), limits.httpErrorMs);
  try {
    for await (const chunk of response) if (body.add(chunk)) break;
  } catch {
    // what broke off, or did not end, is as good as ended
  } finally {
    clearTimeout(timer);
  }
  return body.taken();
}

class BodyStart {
  readonly #bytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** @returns true when the body is longer than the maximum */
  add(chunk: Uint8Array): boolean {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    return this.#length > this.#bytesMax;
  }

  taken(): Body {
    const bytes = Buffer.concat(this.#chunks).subarray(0, this.#bytesMax);
    return { bytes, isCut: this.#length > this.#bytesMax };
  }
}

function isFine({ status }: Pick<Answer, "status">): boolean {
  return status >= 200 && status < 300;
}

function resultOf({ bytes, isCut }: Answer): string | Uint8Array {
  if (isCut) throw new Error(`the answer has more than ${limits.payloadBytesMax} bytes`);
  return textOrBase64(bytes);
}

function verdict(
  { status, bytes, retryAfterMs: waitMs }: Answer,
  place: string,
  scope: HoldScopeOption | undefined,
): never {
  // In stream mode, the decoder drops an incomplete last character: the body may have been cut inside a
  // character.
  const said = new TextDecoder().decode(bytes, { stream: true }).trim();
  const words = `${place} answered ${status}${said === "" ? "" : `: ${said}`}`;
  switch (status) {
    case 400:
    case 422:
      throw new InvalidInputError(words);
    case 429:
    case 502:
    case 503:
    case 504:
    case 529:
      throw new InfrastructureError(words, {
        ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
        ...(scope === undefined ? {} : { scope }),
      });
    default:
      throw new Error(words);
  }
}

function codeOf(cause: unknown): string {
  return (cause as NodeJS.ErrnoException).code ?? "unknown reason";
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new InvalidConfigError(
      "the URL of an HTTP handler is invalid. Write http://host/path or https://…",
    );
  }
  return url;
}

function headersOf(task: HandlerTask): Record<string, string> {
  return {
    "content-type": contentTypeOf(task),
    "waggle-task-id": headerText(task.id),
    "waggle-attempt": String(task.attempt),
    "waggle-kind": headerText(task.kind),
    "waggle-project": headerText(task.project),
    "waggle-user": headerText(task.user),
    ...(Object.keys(task.attributes).length === 0 ? {} : { "waggle-attributes": asciiJson(task.attributes) }),
    ...(task.traceparent === undefined ? {} : { traceparent: task.traceparent }),
    ...(task.tracestate === undefined ? {} : { tracestate: task.tracestate }),
  };
}

function contentTypeOf(task: HandlerTask): string {
  if (task.encoding !== undefined) return "application/octet-stream";
  return /^\s*[{[]/.test(task.payload) && isJson(task.payload)
    ? "application/json"
    : "text/plain; charset=utf-8";
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON in ASCII: a header holds no other characters. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function headerText(name: string): string {
  return name.replace(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);
}
