// The use of one rate of an agent type: tokens per minute, hour or day, for each pair of type and window (budget
// document, section 4). Plain values. Both ways to count are kept, so that an operator may change `sliding` at any
// time. One is a window that slides in steps (rolling-window.ts). The other is the document's window, which restarts
// with the first use after it expired. exact/rate-limit-window.ts is the document's rule to the letter, in seconds.

import { type Instant, instant } from "../ids.ts";
import {
  addTokens,
  emptyWindow,
  fallsTo,
  type Returns,
  type RollingWindow,
  returnsOf,
  totalAt,
} from "./rolling-window.ts";
import type { RateSettings, RateWindow } from "./settings.ts";

/** The document's window. */
export interface RestartingWindow {
  tokens: number;
  startedAt: Instant;
}

export interface RateUse {
  readonly sliding: RollingWindow;
  readonly restarting: RestartingWindow;
}

/** As in the document, section 4.2; shortest first. */
export const rateWindowMs: Readonly<Record<RateWindow, number>> = {
  per_minute: 60_000,
  per_hour: 3_600_000,
  per_day: 86_400_000,
};

export function emptyUse(window: RateWindow, at: Instant): RateUse {
  return { sliding: emptyWindow(rateWindowMs[window]), restarting: { tokens: 0, startedAt: at } };
}

export function recordUse({ sliding, restarting }: RateUse, tokens: number, at: Instant): void {
  addTokens(sliding, tokens, at);
  if (isExpired(restarting, sliding.windowMs, at)) {
    restarting.tokens = 0;
    restarting.startedAt = at;
  }
  restarting.tokens += tokens;
}

/** Tokens that count at an instant. */
export function usedOf(
  { sliding, restarting }: RateUse,
  settings: Pick<RateSettings, "sliding">,
  at: Instant,
): number {
  if (settings.sliding) return totalAt(sliding, at);
  return isExpired(restarting, sliding.windowMs, at) ? 0 : restarting.tokens;
}

/**
 * When, by time alone, fewer than `tokensMax` count, with `reserved` included. `at` when so now; undefined when the
 * reserved tokens alone use up the rate.
 */
export function opensAt(
  use: RateUse,
  settings: RateSettings,
  at: Instant,
  reserved = 0,
): Instant | undefined {
  const usedMax = settings.tokensMax - 1 - reserved;
  if (usedOf(use, settings, at) <= usedMax) return at;
  if (usedMax < 0) return undefined;
  if (settings.sliding) return fallsTo(use.sliding, usedMax, at);
  return expiresAt(use);
}

/** When used tokens no longer count, by time alone; undefined with none. */
export function usedReturns(
  use: RateUse,
  settings: Pick<RateSettings, "sliding">,
  at: Instant,
): Returns | undefined {
  if (settings.sliding) return returnsOf(use.sliding, at);
  if (usedOf(use, settings, at) === 0) return undefined;
  const endsAt = expiresAt(use);
  return { freesAt: endsAt, emptyAt: endsAt };
}

/** The document's window expires once more than its length has passed. */
function expiresAt({ restarting, sliding }: RateUse): Instant {
  return instant(restarting.startedAt + sliding.windowMs + 1);
}

function isExpired({ startedAt }: RestartingWindow, windowMs: number, at: Instant): boolean {
  return at - startedAt > windowMs;
}
