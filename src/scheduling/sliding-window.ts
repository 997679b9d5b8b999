// A rate limit whose window truly slides: beside the budget document's (exact/rate-limit-window.ts), which begins
// anew and lets nearly twice the limit through around a reset. The counting is rolling-window.ts, with its bound:
// what it says was used is never too little, and too much by at most what was used in one step (1/60 of the
// window, rounded up to a millisecond; two steps for a window that 60 does not divide) before the window began.
// So no true window ever holds more than was let through.

import { InvalidValueError } from "../errors.ts";
import type { Instant } from "../ids.ts";
import { checkAmount } from "./exact/budget-snapshot.ts";
import { addTokens, emptyWindow, fallsTo, totalAt } from "./rolling-window.ts";

export interface SlidingWindowOptions {
  /** A whole number ≥ 1. */
  readonly windowMs: number;
  /** Tokens in any window, a whole number ≥ 0. */
  readonly maxTokens: number;
}

/** Stateful: `record` alone changes it. A time before the newest recorded one counts as that. */
export class SlidingWindow {
  readonly windowMs: number;
  readonly maxTokens: number;
  readonly #window;
  #newest = 0;

  /** @throws InvalidValueError for a length or a bound that is no whole number in its range */
  constructor({ windowMs, maxTokens }: SlidingWindowOptions) {
    checkWhole(windowMs, "windowMs", 1);
    checkWhole(maxTokens, "maxTokens", 0);
    this.windowMs = windowMs;
    this.maxTokens = maxTokens;
    this.#window = emptyWindow(windowMs);
  }

  /**
   * @param tokens a whole number ≥ 0
   * @param now milliseconds since the epoch
   * @throws InvalidValueError for tokens or a time that are none
   */
  record(tokens: number, now: number): void {
    checkWhole(tokens, "tokens", 0);
    checkAmount(now, "now");
    this.#newest = Math.max(this.#newest, now);
    addTokens(this.#window, tokens, this.#newest as Instant);
  }

  /** Tokens of the window that ends now, and of at most a step or two before it. */
  usedAt(now: number): number {
    return totalAt(this.#window, this.#noEarlier(now));
  }

  isExceeded(now: number): boolean {
    return this.usedAt(now) >= this.maxTokens;
  }

  /** When `isExceeded` becomes false by time alone: `now` when it is, infinity when a bound of 0 never lets it. */
  freeAt(now: number): number {
    if (this.maxTokens === 0) return Number.POSITIVE_INFINITY;
    const at = this.#noEarlier(now);
    return this.isExceeded(at) ? fallsTo(this.#window, this.maxTokens - 1, at) : now;
  }

  #noEarlier(now: number): Instant {
    return Math.max(this.#newest, now) as Instant;
  }
}

function checkWhole(value: number, field: string, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new InvalidValueError(`${field}: must be a whole number from ${least}, not ${value}`, { field });
}
