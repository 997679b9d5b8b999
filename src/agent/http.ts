// A handler that posts each attempt to a URL: payload as the body, answer as the result, verdict by status.
//
//   2xx → completed · 400, 422 → invalid input · 429, 502, 503, 504 and no answer at all → infrastructure ·
//   else, redirects and answers that break off included → failed
//
// An answer that began counts as the attempt, for the endpoint has begun its work. No answer costs no attempt, except
// for a task with `maxAttempts: 1` whose request was sent whole: the endpoint may have done the work. Such a task gets
// a connection of its own. A kept one that the endpoint closes at that moment would cost the task its only attempt.
//
// Tokens it used: a number in the answer's header `waggle-tokens`, whatever the status. What is none counts for
// nothing, and the log says so.
//
// Not `fetch`: that gives up after five minutes without an answer, and an attempt may take as long as its task
// allows. The URL's user, password and query never stand in an error or a log.

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { z } from "zod";
import { InvalidConfigError } from "../errors.ts";
import { limits } from "../limits.ts";
import { type Handler, type HandlerTask, InfrastructureError, InvalidInputError } from "./handler.ts";
import { readerOf, text } from "./options.ts";
import { textOrBase64 } from "./result-text.ts";

export interface HttpOptions {
  /** `http://` or `https://`; a user and password in it become basic authorization. */
  readonly url: string;
  /** Added to each request; they win over ours. */
  readonly headers?: Readonly<Record<string, string>>;
}

const readOptions = readerOf<HttpOptions>(
  {
    each: { url: text, headers: z.record(text, text) },
    required: ["url"],
    example: '{ url: "http://localhost:8080" }',
  },
  InvalidConfigError,
);

/** Posts each attempt to `url`. Besides the content type, a request has the headers `waggle-task-id`,
 *  `waggle-attempt`, `waggle-kind`, `waggle-project` and `waggle-user`, percent-encoded where they are not
 *  plain ASCII.
 *
 *  An answer that breaks off counts as an attempt. No answer costs no attempt, except that of a task with
 *  `maxAttempts: 1` whose request was sent whole.
 *  @throws InvalidConfigError naming the option; when the URL is none of HTTP */
export function httpHandler(given: HttpOptions): Handler {
  const { url: address, headers = {} } = readOptions("httpHandler", given);
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

  return async (task, { signal, reportTokens, logger }) => {
    const answer = await post(endpoint, task, signal).catch((cause: unknown) => {
      throw signal.aborted ? signal.reason : cause;
    });
    const { tokens } = answer;
    if (/^\d{1,15}$/.test(tokens)) reportTokens(Number(tokens));
    else if (tokens !== "")
      logger.warn(
        `not counted as tokens: ${place} answered with the header waggle-tokens: ` +
          `${JSON.stringify(tokens.slice(0, limits.tokensLineCharactersMax))}; expected is a whole number`,
      );
    return isFine(answer) ? resultOf(answer) : verdict(answer, place);
  };
}

interface Endpoint {
  readonly url: URL;
  readonly request: typeof requestHttp;
  readonly agent: HttpAgent;
  readonly headers: Readonly<Record<string, string>>;
  /** What is said of it: without user, password and query. */
  readonly place: string;
}

interface Answer {
  readonly status: number;
  /** As the endpoint says, whatever that is; empty when it does not. */
  readonly tokens: string;
  readonly bytes: Uint8Array;
  /** There was more than was to be kept. */
  readonly isCut: boolean;
}

/** @throws InfrastructureError without an answer, where that costs no attempt; Error where it does */
async function post(endpoint: Endpoint, task: HandlerTask, signal: AbortSignal): Promise<Answer> {
  const response = await responseTo(endpoint, task, signal);
  const status = response.statusCode ?? 0;
  const bytesMax = isFine({ status }) ? limits.payloadBytesMax : limits.httpErrorBytes;
  const body = await read(response, bytesMax).catch((cause: unknown) => {
    throw new Error(`${endpoint.place} answered ${status}, and its answer broke off (${codeOf(cause)})`);
  });
  return { status, tokens: String(response.headers["waggle-tokens"] ?? ""), ...body };
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
      const mayBeDone =
        "the request was sent whole and may have been carried out, and the task has one attempt";
      reject(isSent && isAtMostOnce ? new Error(`${text}: ${mayBeDone}`) : new InfrastructureError(text));
    });
    request.end(body);
  });
}

async function read(
  response: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Pick<Answer, "bytes" | "isCut">> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bytesMax) break; // ends the connection too: what follows is not wanted
  }
  return { bytes: Buffer.concat(chunks).subarray(0, bytesMax), isCut: length > bytesMax };
}

function isFine({ status }: Pick<Answer, "status">): boolean {
  return status >= 200 && status < 300;
}

function resultOf({ bytes, isCut }: Answer): string | Uint8Array {
  if (isCut) throw new Error(`the answer has more than ${limits.payloadBytesMax} bytes`);
  return textOrBase64(bytes);
}

function verdict({ status, bytes }: Answer, place: string): never {
  // A stream's decoder leaves the part of a character at the end out: the answer may have been cut there.
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
      throw new InfrastructureError(words);
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
      "the URL of an HTTP handler is not one. Write it as http://host/path or https://…",
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
    return false; // that was the question
  }
}

function headerText(name: string): string {
  return name.replace(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);
}
