// What agents of one type used of their rate: tokens in a minute, an hour or a day, either in a window that
// slides (in steps, rolling-window.ts) or in the budget document's, which begins anew with the first use after it
// expired (section 4; exact/rate-limit-window.ts is that rule to the letter, in seconds). Plain values.

import type { RateSettings, RateWindow } from "../core/settings.ts";
import { type Instant, instant } from "../ids.ts";
import { addTokens, emptyWindow, fallsTo, type RollingWindow, rescaled, totalAt } from "./rolling-window.ts";

/** The document's window. */
export interface RestartingWindow {
  tokens: number;
  startedAt: Instant;
}

export type RateUse =
  | { readonly kind: "sliding"; readonly window: RollingWindow }
  | { readonly kind: "restarting"; readonly window: RestartingWindow };

/** As in the document, section 4.2. */
export const rateWindowMs: Readonly<Record<RateWindow, number>> = {
  per_minute: 60_000,
  per_hour: 3_600_000,
  per_day: 86_400_000,
};

export function emptyUse({ sliding, window }: RateSettings, at: Instant): RateUse {
  return sliding
    ? { kind: "sliding", window: emptyWindow(rateWindowMs[window]) }
    : { kind: "restarting", window: { tokens: 0, startedAt: at } };
}

/** The use when the settings change: what slides goes on sliding, and a window that restarts is kept while it is the
 *  same; else what counts at that instant counts on, as if used then. */
export function useUnder(
  use: RateUse,
  { before, after }: { readonly before: RateSettings; readonly after: RateSettings },
  at: Instant,
): RateUse {
  if (before.window === after.window && before.sliding === after.sliding) return use;
  if (use.kind === "sliding" && after.sliding)
    return { kind: "sliding", window: rescaled(use.window, rateWindowMs[after.window], at) };
  const carried = emptyUse(after, at);
  recordUse(carried, after, usedOf(use, before, at), at);
  return carried;
}

export function recordUse(use: RateUse, { window }: RateSettings, tokens: number, at: Instant): void {
  if (use.kind === "sliding") return addTokens(use.window, tokens, at);
  if (isExpired(use.window, window, at)) {
    use.window.tokens = 0;
    use.window.startedAt = at;
  }
  use.window.tokens += tokens;
}

/** Tokens that count at an instant. */
export function usedOf(use: RateUse, { window }: RateSettings, at: Instant): number {
  if (use.kind === "sliding") return totalAt(use.window, at);
  return isExpired(use.window, window, at) ? 0 : use.window.tokens;
}

/** When, by time alone, fewer than `tokensMax` count, `reserved` included; `at` when so now, undefined when what is
 *  reserved uses it up. */
export function opensAt(
  use: RateUse,
  settings: RateSettings,
  at: Instant,
  reserved = 0,
): Instant | undefined {
  const usedMax = settings.tokensMax - 1 - reserved;
  if (usedOf(use, settings, at) <= usedMax) return at;
  if (usedMax < 0) return undefined;
  if (use.kind === "sliding") return fallsTo(use.window, usedMax, at);
  // The document's window has expired when more than its length has passed.
  return instant(use.window.startedAt + rateWindowMs[settings.window] + 1);
}

function isExpired({ startedAt }: RestartingWindow, window: RateWindow, at: Instant): boolean {
  return at - startedAt > rateWindowMs[window];
}
