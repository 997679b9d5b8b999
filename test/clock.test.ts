// The system's clock: timers that are longer than one of Node holds.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { systemClock } from "../src/clock.ts";
import { limits } from "../src/limits.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it("waits longer than one timer of Node holds", () => {
  const run = vi.fn();
  systemClock.after(2 * limits.timerMsMax + 5, run);
  vi.advanceTimersByTime(2 * limits.timerMsMax + 4);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(run).toHaveBeenCalledOnce();
});

it("cancels a long wait in any part of it, and never ends an infinite one", () => {
  const run = vi.fn();
  systemClock.after(Number.POSITIVE_INFINITY, run);
  const cancel = systemClock.after(limits.timerMsMax + 5, run);
  vi.advanceTimersByTime(limits.timerMsMax + 1);
  cancel();
  vi.advanceTimersByTime(3 * limits.timerMsMax);
  expect(run).not.toHaveBeenCalled();
});
