// What a provider's error says: its HTTP status, and the time until calls are accepted again. Frameworks wrap the
// errors of their clients, so the error behind an error counts too. An event of a stream that has begun names its error
// without a status.

import { durationMs, isUnserved, mayNameTime, retryAfterMs } from "../agent/retry-after.ts";
import { errorBehind } from "../agent/wrapped-error.ts";
import { limits } from "../limits.ts";

/** Frameworks wrap an error two or three times. */
const DEPTH_MAX = 8;

export interface Refusal {
  /** HTTP status, from 400. */
  readonly status: number;
  /** ms ≥ 0; undefined where the provider named no time, or the status is neither 429 nor 503 nor 529. */
  readonly retryAfterMs?: number;
  /** The provider broke off a stream, and the status stands for the name of its error. */
  readonly isNamed?: true;
}

/** Whether calls are refused for now: the quota is used up, or an overloaded provider names a time. No client tries a
 *  stream again that has begun, so an overload in a stream needs no time. */
export function isRefused({ status, retryAfterMs: waitMs, isNamed }: Refusal): boolean {
  return status === 429 || waitMs !== undefined || isNamed === true;
}

/** Whether nothing is known about the quota: the provider has not taken the call. */
export function isUnanswered({ status }: Refusal): boolean {
  return isUnserved(status);
}

/** @returns undefined for an error without the status of a provider's answer */
export function refusalIn(error: unknown, nowMs: number): Refusal | undefined {
  let at = error;
  for (let depth = 0; depth < DEPTH_MAX && typeof at === "object" && at !== null; depth += 1) {
    const status: unknown = Reflect.get(at, "statusCode") ?? Reflect.get(at, "status");
    if (typeof status === "number" && status >= 400) return refusalOf(status, headersOf(at), nowMs);
    const named = namedStatus(at);
    if (named !== undefined) {
      const waitMs =
        refusalOf(named, headersOf(at), nowMs).retryAfterMs ?? retryAfterIn(Reflect.get(at, "message"));
      return { status: named, isNamed: true, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
    }
    at = errorBehind(at) ?? Reflect.get(at, "error") ?? Reflect.get(at, "response");
  }
  return undefined;
}

/** The error that an event of OpenAI's or Anthropic's streams reports; undefined for any other event. */
export function errorInEvent(event: unknown): unknown {
  if (typeof event !== "object" || event === null) return undefined;
  const type: unknown = Reflect.get(event, "type");
  const error: unknown = Reflect.get(event, "error") ?? undefined;
  // Events of chat completions have no type.
  if (type === undefined) return error;
  return type === "error" || type === "response.failed" ? (error ?? event) : undefined;
}

/** Names of errors in streams, with the status of the same error in an answer. */
const statusByName: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["insufficient_quota", 429],
  [429, 429],
  ["overloaded_error", 529],
  ["server_is_overloaded", 503],
  [503, 503],
  [529, 529],
]);

function namedStatus(error: object): number | undefined {
  return statusByName.get(Reflect.get(error, "code")) ?? statusByName.get(Reflect.get(error, "type"));
}

/** The time that OpenAI's message names: `Rate limit reached for gpt-4o. Please try again in 6m0s.` */
function retryAfterIn(message: unknown): number | undefined {
  const [, duration] = /\btry again in ((?:\d{1,9}(?:\.\d+)?(?:ms|[smhd]))+)/i.exec(String(message)) ?? [];
  const waitMs = duration === undefined ? undefined : durationMs(duration);
  return waitMs === undefined ? undefined : Math.min(limits.holdMsMax, Math.ceil(waitMs));
}

export function refusalOf(status: number, headers: Iterable<[string, string]>, nowMs: number): Refusal {
  const waitMs = mayNameTime(status) ? retryAfterMs(Object.fromEntries(headers), nowMs) : undefined;
  return waitMs === undefined ? { status } : { status, retryAfterMs: waitMs };
}

/** `responseHeaders` of the AI SDK; `headers` of the clients of OpenAI and Anthropic. */
function headersOf(error: object): [string, string][] {
  const headers: unknown = Reflect.get(error, "responseHeaders") ?? Reflect.get(error, "headers");
  if (headers instanceof Headers) return [...headers];
  if (typeof headers !== "object" || headers === null) return [];
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
}
