// A rate limit whose window truly slides: beside the budget document's (exact/rate-limit-window.ts), which begins
// anew and lets nearly twice the limit through around a reset. The counting is rolling-window.ts, with its bound:
// what it says was used is never too little, and too much by at most what was used in one step (1/60 of the
// window, rounded up to a millisecond; two steps for a window that 60 does not divide) before the window began.
// So no true window ever holds more than was let through.

import type { Instant } from "../ids.ts";
import { checkAmount, checkObject, checkWhole } from "../state/argument.ts";
import { addTokens, emptyWindow, fallsTo, totalAt } from "../state/rolling-window.ts";

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
  constructor(options: SlidingWindowOptions) {
    checkObject(options, "options");
    const { windowMs, maxTokens } = options;
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

  /** Tokens of the window that ends now, and of at most a step or two before it. @throws InvalidValueError */
  usedAt(now: number): number {
    return totalAt(this.#window, this.#noEarlier(now));
  }

  /** Whether the bound is reached. @throws InvalidValueError for a time that is none */
  isExceeded(now: number): boolean {
    return this.usedAt(now) >= this.maxTokens;
  }

  /**
   * When `isExceeded` becomes false by time alone: `now` when it is, infinity when a bound of 0 never lets it.
   *
   * @throws InvalidValueError for a time that is none
   */
  freeAt(now: number): number {
    const at = this.#noEarlier(now);
    if (this.maxTokens === 0) return Number.POSITIVE_INFINITY;
    return this.isExceeded(at) ? fallsTo(this.#window, this.maxTokens - 1, at) : now;
  }

  #noEarlier(now: number): Instant {
    checkAmount(now, "now");
    return Math.max(this.#newest, now) as Instant;
  }
}
