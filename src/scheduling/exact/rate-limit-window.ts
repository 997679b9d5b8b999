// One rate limit of one agent type, to the letter (budget-scheduler specification, section 4). The window does not
// slide: it restarts with the first use after it expired. Twice the limit can pass around a reset; sliding-window.ts is
// the window that slides. Time is an argument, in seconds.

import { InvalidValueError } from "../../errors.ts";
import { checkAmount, checkObject, checkText } from "../../state/argument.ts";

const secondsByLimitType: ReadonlyMap<string, number> = new Map([
  ["per_minute", 60],
  ["per_hour", 3_600],
  ["per_day", 86_400],
]);

export interface RateLimitWindowOptions {
  /** The limited agent type: `claude`. */
  readonly agentType: string;
  /** `per_minute`, `per_hour` or `per_day`. */
  readonly limitType: string;
  /** Tokens in one window. */
  readonly maxTokens: number;
  /** Tokens used in the current window; default 0. */
  readonly currentTokens?: number;
  /** When the current window began, seconds since the epoch; absent or 0 means now. */
  readonly windowStart?: number;
}

/** Stateful: only `record` changes it. */
export class RateLimitWindow {
  readonly agentType: string;
  readonly limitType: string;
  readonly maxTokens: number;
  readonly windowSeconds: number;
  #currentTokens: number;
  #windowStart: number;

  /**
   * @param now seconds since the epoch
   * @throws InvalidValueError for an unknown type (the document's KeyError, at once instead of at the first use) and
   *   for numbers that are negative or invalid
   */
  constructor(options: RateLimitWindowOptions, now: number) {
    checkObject(options, "options");
    const { agentType, limitType, maxTokens, currentTokens = 0, windowStart = 0 } = options;
    checkText(agentType, "agentType");
    this.agentType = agentType;
    this.limitType = limitType;
    this.windowSeconds = windowSecondsOf(limitType);
    checkAmount(maxTokens, "maxTokens");
    checkAmount(currentTokens, "currentTokens");
    checkAmount(windowStart, "windowStart");
    checkAmount(now, "now");
    this.maxTokens = maxTokens;
    this.#currentTokens = currentTokens;
    this.#windowStart = windowStart === 0 ? now : windowStart;
  }

  /** Tokens used in the window that began at `windowStart`, even after the window expired. */
  get currentTokens(): number {
    return this.#currentTokens;
  }

  get windowStart(): number {
    return this.#windowStart;
  }

  /**
   * Adds tokens, after starting a new window at `now` if the old one has expired (sections 4.3, 4.6).
   *
   * @throws InvalidValueError for tokens that are negative or no number
   */
  record(tokens: number, now: number): void {
    checkAmount(tokens, "tokens");
    checkAmount(now, "now");
    if (this.#isExpired(now)) {
      this.#currentTokens = 0;
      this.#windowStart = now;
    }
    this.#currentTokens += tokens;
  }

  /**
   * Whether the limit is reached in a window that has not expired. Changes nothing (section 4.4).
   *
   * @throws InvalidValueError for an invalid time
   */
  isExceeded(now: number): boolean {
    checkAmount(now, "now");
    return !this.#isExpired(now) && this.#currentTokens >= this.maxTokens;
  }

  /** Until the window's end, ≥ 0, with or without use (section 4.5). @throws InvalidValueError for an invalid time */
  secondsUntilReset(now: number): number {
    checkAmount(now, "now");
    return Math.max(0, this.windowSeconds - (now - this.#windowStart));
  }

  #isExpired(now: number): boolean {
    return now - this.#windowStart > this.windowSeconds;
  }
}

/** Section 4.2. @throws InvalidValueError for an unknown type */
export function windowSecondsOf(limitType: string): number {
  const seconds = secondsByLimitType.get(limitType);
  if (seconds !== undefined) return seconds;
  const known = [...secondsByLimitType.keys()].join(", ");
  const sentence = `there is no rate limit '${limitType}'; there are ${known}`;
  throw new InvalidValueError(sentence, { field: "limitType" });
}
