// The time until a provider takes work again, as the headers of its refusal say: `Retry-After-Ms`, `Retry-After`, or
// else the resets of the limits that are used up. Those are `x-ratelimit-reset…`, `anthropic-ratelimit-…-reset`, and
// the IETF's `RateLimit-Reset` and `RateLimit`. Times that cannot be read are ignored.

import type { IncomingHttpHeaders } from "node:http";
import { limits } from "../limits.ts";

/** Whether a status of HTTP may name the time until work is accepted again: a quota is used up (429), or the service is
 *  overloaded (503, and Anthropic's 529). */
export function mayNameTime(status: number): boolean {
  return status === 429 || status === 503 || status === 529;
}

/** Whether a status of HTTP says that the service has not taken the work, for another reason than a quota. */
export function isUnserved(status: number): boolean {
  return status === 502 || status === 503 || status === 504 || status === 529;
}

/** @param nowMs time of this machine; a `Date` header takes its place, so that a wrong clock does no harm
 *  @returns ms ≥ 0, at most `limits.holdMsMax`; undefined without a time */
export function retryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const now = dateMs(textOf(headers.date)) ?? nowMs;
  const said = textOf(headers["retry-after"]);
  const waitMs =
    numberIn(textOf(headers["retry-after-ms"])) ??
    secondsMs(said) ??
    untilMs(dateMs(said), now) ??
    resetMs(headers, now);
  return waitMs === undefined ? undefined : Math.min(limits.holdMsMax, Math.max(0, Math.ceil(waitMs)));
}

/** The latest reset of the limits that are used up. */
function resetMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const waitsMs = Object.entries(headers)
    .filter(([name]) => isUsedUp(name, headers))
    .map(([, value]) => textOf(value))
    .map((said) => resetSecondsMs(said, now) ?? durationMs(said) ?? untilMs(dateMs(said), now));
  const known = [...waitsMs, ...policiesMs(textOf(headers.ratelimit))].filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** Whether a header is the reset of a limit that is used up. Anthropic sends all limits with every answer, so its limit
 *  is used up only with `remaining: 0`. A limit of another provider is used up without `remaining` as well. */
function isUsedUp(reset: string, headers: IncomingHttpHeaders): boolean {
  const remaining = textOf(headers[reset.replace("reset", "remaining")]);
  if (/^anthropic-ratelimit-.+-reset$/.test(reset)) return remaining === "0";
  return /^(x-)?ratelimit-reset/.test(reset) && !(Number(remaining || 0) > 0);
}

/** Waits that the header `RateLimit` names. Both forms of the IETF's drafts are read: `limit=100, remaining=0,
 *  reset=50` is one policy, and `"burst";r=0;t=50, "daily";r=9;t=3600` is several. */
function policiesMs(said: string): (number | undefined)[] {
  const policies = /\breset=/.test(said) ? [said] : said.split(",");
  return policies
    .filter((policy) => !(Number(/\b(?:remaining|r)=(\d+)/.exec(policy)?.[1] ?? 0) > 0))
    .map((policy) => secondsMs(/\b(?:reset|t)=(\d+)/.exec(policy)?.[1] ?? ""));
}

/** `12` or `0.5`. */
function secondsMs(said: string): number | undefined {
  const seconds = numberIn(said);
  return seconds === undefined ? undefined : seconds * 1_000;
}

function numberIn(said: string): number | undefined {
  return /^\d{1,12}(\.\d+)?$/.test(said) ? Number(said) : undefined;
}

/** Seconds from now, or since the Unix epoch: seconds or ms. No window of a quota lasts thirty years. */
function resetSecondsMs(said: string, now: number): number | undefined {
  const number = /^\d{1,14}(\.\d+)?$/.test(said) ? Number(said) : undefined;
  if (number === undefined) return undefined;
  if (number >= EPOCH_MS) return number - now;
  return number >= EPOCH_SECONDS ? number * 1_000 - now : number * 1_000;
}

const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e12;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `6m0s`, `1.5s`, `20ms`. */
export function durationMs(said: string): number | undefined {
  if (!/^(\d{1,9}(\.\d+)?(ms|s|m|h|d))+$/.test(said)) return undefined;
  let sum = 0;
  for (const [, number, unit = ""] of said.matchAll(/([\d.]+)(ms|s|m|h|d)/g))
    sum += Number(number) * (unitMs[unit] ?? 0);
  return sum;
}

/** An HTTP date, or a date of RFC 3339. */
function dateMs(said: string): number | undefined {
  if (!/^(\w{3}, \d\d? \w{3} \d{4} |\d{4}-\d\d-\d\dT)\d\d?:\d\d/.test(said)) return undefined;
  const ms = Date.parse(said);
  return Number.isNaN(ms) ? undefined : ms;
}

function untilMs(dateMsOrNone: number | undefined, now: number): number | undefined {
  return dateMsOrNone === undefined ? undefined : dateMsOrNone - now;
}

function textOf(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? (value[0] ?? "") : (value ?? "")).trim();
}
