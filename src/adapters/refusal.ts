// What a provider's error says: its HTTP status, and the time until calls are accepted again. Frameworks wrap the
// errors of their clients, so the error behind an error counts too.

import { isUnserved, mayNameTime, retryAfterMs } from "../agent/retry-after.ts";
import { errorBehind } from "../agent/wrapped-error.ts";

/** Frameworks wrap an error two or three times. */
const DEPTH_MAX = 8;

export interface Refusal {
  /** HTTP status, from 400. */
  readonly status: number;
  /** ms ≥ 0; undefined where the provider named no time, or the status is neither 429 nor 503 nor 529. */
  readonly retryAfterMs?: number;
}

/** Whether calls are refused for now: the quota is used up, or an overloaded provider names a time. */
export function isRefused({ status, retryAfterMs: waitMs }: Refusal): boolean {
  return status === 429 || waitMs !== undefined;
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
    at = errorBehind(at);
  }
  return undefined;
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
