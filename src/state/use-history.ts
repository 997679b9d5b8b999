// Tokens used over time, in small steps for recent use and in larger steps for older use. A window of any length can
// begin with the use that falls into the window. A window that is kept all along is rolling-window.ts.
//
// Level j holds up to `limits.historyStepsPerLevel` steps of `limits.historyStepMs · 2ʲ`. A full level hands its oldest
// step to the next level, where two neighbours become one step. So a step's length is at most 1/60 of its age. A new
// window counts all use of its own length, and use of at most one of its 60 buckets more.

import { assert } from "../assert.ts";
import { type Instant, instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { addTokens, emptyWindow, type RollingWindow, roll } from "./rolling-window.ts";

/** By level: step, tokens, step, tokens, …, oldest first, without empty steps. */
export type UseHistory = number[][];

/** Counts tokens at an instant, not before the last instant. @param tokens a whole number ≥ 0 */
export function addUse(history: UseHistory, tokens: number, at: Instant): void {
  assert(Number.isSafeInteger(tokens) && tokens >= 0, "tokens are counted in whole numbers");
  if (tokens > 0) push(history, 0, Math.floor(at / stepMsOf(0)), tokens);
}

/** A window of the use before `at`. All use of a step counts at the step's end, so that no use leaves too early. */
export function windowFrom(history: UseHistory, windowMs: number, at: Instant): RollingWindow {
  const window = emptyWindow(windowMs);
  for (let level = history.length - 1; level >= 0; level -= 1) {
    const steps = history[level] ?? [];
    for (let n = 0; n + 1 < steps.length; n += 2) {
      const end = ((steps[n] ?? 0) + 1) * stepMsOf(level);
      const usedAt = instant(Math.min(at, end - 1));
      if (usedAt + windowMs > at) addTokens(window, steps[n + 1] ?? 0, usedAt);
    }
  }
  roll(window, at);
  return window;
}

/** The first fault of a history, or undefined. */
export function historyAmiss(history: UseHistory, at: number): string | undefined {
  if (history.length > limits.historyLevelsMax) return `${history.length} levels`;
  for (const [level, steps] of history.entries()) {
    if (steps.length % 2 !== 0 || steps.length > 2 * limits.historyStepsPerLevel)
      return `level ${level} of ${steps.length} numbers`;
    for (let n = 0; n < steps.length; n += 2) {
      const [before = -1, step = -1, tokens = 0] = [steps[n - 2], steps[n], steps[n + 1]];
      const isSound = Number.isSafeInteger(step) && Number.isSafeInteger(tokens) && tokens > 0;
      if (!isSound || step <= before || step * stepMsOf(level) > at)
        return `${tokens} tokens at step ${step} of level ${level}`;
    }
  }
  return undefined;
}

function push(history: UseHistory, level: number, step: number, tokens: number): void {
  if (level >= limits.historyLevelsMax) return; // older than the longest window
  if (history.length === level) history.push([]);
  const steps = history[level];
  assert(steps !== undefined, "levels are filled one after the other");
  if (steps.at(-2) === step) {
    steps[steps.length - 1] = (steps.at(-1) ?? 0) + tokens;
    return;
  }
  steps.push(step, tokens);
  if (steps.length <= 2 * limits.historyStepsPerLevel) return;
  const [oldest = 0, used = 0] = steps.splice(0, 2);
  push(history, level + 1, Math.floor(oldest / 2), used);
}

function stepMsOf(level: number): number {
  return limits.historyStepMs * 2 ** level;
}
