// Tokens used in the last so many milliseconds, in a bounded number of steps: a plain value in the state, and the
// functions that change it. The window of a budget. The document's rate limit, which does not slide, is in rate.ts.
//
// The error: tokens count for at least the window and, where `limits.windowBuckets` divides it, at most one step longer
// (otherwise two). Never shorter, so that no span as long as the window holds more than a hard limit.

import { assert } from "../assert.ts";
import { type Instant, instant } from "../ids.ts";
import { limits } from "../limits.ts";

/** The tokens used in one step of time. */
export interface WindowBucket {
  /** The step's number since the epoch: `floor(at / stepMs)`. */
  readonly step: number;
  tokens: number;
}

export interface RollingWindow {
  readonly windowMs: number;
  /** Σ of the buckets, including buckets that left since the last change. */
  held: number;
  /** Oldest first, none empty, at most `limits.windowBuckets` + 1. */
  readonly buckets: WindowBucket[];
}

/** @param windowMs a whole number ≥ 1 */
export function emptyWindow(windowMs: number): RollingWindow {
  assert(Number.isSafeInteger(windowMs) && windowMs >= 1, "a window lasts whole milliseconds");
  return { windowMs, held: 0, buckets: [] };
}

/** When counted tokens no longer count, by time alone. */
export interface Returns {
  /** The next of them. */
  readonly freesAt: Instant;
  /** All of them. */
  readonly emptyAt: Instant;
}

/** Counts tokens at an instant, not before the last instant. @param tokens a whole number ≥ 0 */
export function addTokens(window: RollingWindow, tokens: number, at: Instant): void {
  assert(Number.isSafeInteger(tokens) && tokens >= 0, "tokens are counted in whole numbers");
  roll(window, at);
  if (tokens === 0) return;
  const step = Math.floor(at / stepMsOf(window.windowMs));
  const newest = window.buckets.at(-1);
  if (newest?.step === step) newest.tokens += tokens;
  else window.buckets.push({ step, tokens });
  window.held += tokens;
}

/** Drops the buckets that left the window. Changes no total. */
export function roll(window: RollingWindow, at: Instant): void {
  for (let oldest = window.buckets[0]; oldest !== undefined; oldest = window.buckets[0]) {
    if (leavesAt(window.windowMs, oldest) > at) return;
    window.held -= oldest.tokens;
    window.buckets.shift();
  }
}

/** Tokens that count at an instant, without a change of the window. */
export function totalAt({ windowMs, held, buckets }: RollingWindow, at: Instant): number {
  let left = 0;
  for (const bucket of buckets) {
    if (leavesAt(windowMs, bucket) > at) break;
    left += bucket.tokens;
  }
  return held - left;
}

/** The next instant after `at` at which the total falls by time alone; undefined when the total is 0. */
export function nextChangeAt({ windowMs, buckets }: RollingWindow, at: Instant): Instant | undefined {
  const next = buckets.find((bucket) => leavesAt(windowMs, bucket) > at);
  return next === undefined ? undefined : leavesAt(windowMs, next);
}

/** The first instant after `at` with a total of at most `tokensMax`, if nothing is added; `at` when so now. */
export function fallsTo(window: RollingWindow, tokensMax: number, at: Instant): Instant {
  let total = totalAt(window, at);
  if (total <= tokensMax) return at;
  for (const bucket of window.buckets) {
    const leaves = leavesAt(window.windowMs, bucket);
    if (leaves <= at) continue;
    total -= bucket.tokens;
    if (total <= tokensMax) return leaves;
  }
  return at; // unreachable while tokensMax ≥ 0: an empty window holds nothing
}

/** When tokens next leave, and when the last have left, if nothing is added; undefined when the total is 0. */
export function returnsOf(window: RollingWindow, at: Instant): Returns | undefined {
  const next = nextChangeAt(window, at);
  const last = window.buckets.at(-1);
  return next === undefined || last === undefined
    ? undefined
    : { freesAt: next, emptyAt: leavesAt(window.windowMs, last) };
}

function leavesAt(windowMs: number, { step }: WindowBucket): Instant {
  const stepMs = stepMsOf(windowMs);
  const steps = Math.ceil(windowMs / stepMs);
  return instant((step + steps + 1) * stepMs);
}

function stepMsOf(windowMs: number): number {
  return Math.ceil(windowMs / limits.windowBuckets);
}
