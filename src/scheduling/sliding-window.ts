// A rate limit whose window truly slides. The budget document's window (exact/rate-limit-window.ts) restarts instead,
// and lets nearly twice the limit through around a reset. rolling-window.ts counts, with its bound. The reported use is
// never too low. It is too high by at most the use of one step before the window began. A step is 1/60 of the window,
// rounded up to a millisecond; the bound is two steps for a window that 60 does not divide. So no true window ever
// exceeds the limit.

import type { Instant } from "../ids.ts";
import { checkAmount, checkObject, checkWhole } from "../state/argument.ts";
import { addTokens, emptyWindow, fallsTo, totalAt } from "../state/rolling-window.ts";

export interface SlidingWindowOptions {
  /** A whole number ≥ 1. */
  readonly windowMs: number;
  /** Tokens in any window, a whole number ≥ 0. */
  readonly maxTokens: number;
}

/** Stateful: only `record` changes it. A time before the newest recorded time counts as the newest. */
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
   * @throws InvalidValueError for invalid tokens or an invalid time
   */
  record(tokens: number, now: number): void {
    checkWhole(tokens, "tokens", 0);
    checkAmount(now, "now");
    this.#newest = Math.max(this.#newest, now);
    addTokens(this.#window, tokens, this.#newest as Instant);
  }

  /** Tokens of the window that ends now, and of at most a step or two before. @throws InvalidValueError */
  usedAt(now: number): number {
    return totalAt(this.#window, this.#noEarlier(now));
  }

  /** Whether the bound is reached. @throws InvalidValueError for an invalid time */
  isExceeded(now: number): boolean {
    return this.usedAt(now) >= this.maxTokens;
  }

  /**
   * When `isExceeded` becomes false by time alone: `now` when already false, infinity for a bound of 0.
   *
   * @throws InvalidValueError for an invalid time
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
