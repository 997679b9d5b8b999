// The budget document's rate window, section 4: behaviour, and gap.

import { describe, expect, it } from "vitest";
import {
  RateLimitWindow,
  type RateLimitWindowOptions,
} from "../../../src/scheduling/exact/rate-limit-window.ts";

const start = 1_000;

function aWindow(overrides: Partial<RateLimitWindowOptions> = {}, now = start): RateLimitWindow {
  return new RateLimitWindow(
    { agentType: "claude", limitType: "per_minute", maxTokens: 100, ...overrides },
    now,
  );
}

describe("RateLimitWindow", () => {
  it.each([
    ["per_minute", 60],
    ["per_hour", 3_600],
    ["per_day", 86_400],
  ])("%s lasts %d s", (limitType, seconds) => expect(aWindow({ limitType }).windowSeconds).toBe(seconds));

  it.each(["per_week", "", "constructor"])("refuses '%s'", (limitType) => {
    expect(() => aWindow({ limitType })).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field: "limitType" }),
    );
  });

  it("begins now when no start is given, or 0", () => {
    expect(aWindow().windowStart).toBe(start);
    expect(aWindow({ windowStart: 0 }).windowStart).toBe(start);
    expect(aWindow({ windowStart: 7 }).windowStart).toBe(7);
  });

  it("is exceeded from the last token on", () => {
    const window = aWindow();
    window.record(99, start);
    expect(window.isExceeded(start)).toBe(false);
    window.record(1, start);
    expect(window.isExceeded(start)).toBe(true);
    expect(aWindow({ maxTokens: 0 }).isExceeded(start)).toBe(true);
  });

  it("expires only after the length, not at the length", () => {
    const window = aWindow({ currentTokens: 100 });
    expect(window.isExceeded(start + 60)).toBe(true);
    expect(window.isExceeded(start + 60.001)).toBe(false);
  });

  it("keeps the old count after it expired, until the next record", () => {
    const window = aWindow({ currentTokens: 100 });
    expect(window.isExceeded(start + 61)).toBe(false);
    expect([window.currentTokens, window.windowStart]).toEqual([100, start]);
    window.record(5, start + 70);
    expect([window.currentTokens, window.windowStart]).toEqual([5, start + 70]);
  });

  it("adds to the window that is still open at its very end", () => {
    const window = aWindow({ currentTokens: 1 });
    window.record(2, start + 60);
    expect([window.currentTokens, window.windowStart]).toEqual([3, start]);
  });

  it.each([
    [0, 60],
    [59.5, 0.5],
    [60, 0],
    [600, 0],
  ])("%d s after its start resets in %d s, used or not", (elapsed, left) => {
    expect(aWindow().secondsUntilReset(start + elapsed)).toBe(left);
    expect(aWindow({ currentTokens: 100 }).secondsUntilReset(start + elapsed)).toBe(left);
  });

  it("lets nearly twice the limit through around a reset: the document's gap", () => {
    const window = aWindow();
    window.record(1, start);
    window.record(98, start + 60);
    window.record(99, start + 60.5);
    expect(window.isExceeded(start + 60.5)).toBe(false);
  });

  it.each([
    ["tokens", (window: RateLimitWindow) => window.record(-1, start)],
    ["tokens", (window: RateLimitWindow) => window.record(Number.NaN, start)],
    ["now", (window: RateLimitWindow) => window.record(1, Number.NaN)],
  ])("refuses bad %s and changes nothing", (field, act) => {
    const window = aWindow({ currentTokens: 7 });
    expect(() => act(window)).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
    expect([window.currentTokens, window.windowStart]).toEqual([7, start]);
  });

  it.each(["maxTokens", "currentTokens", "windowStart"])("refuses a negative %s", (field) => {
    expect(() => aWindow({ [field]: -1 })).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }),
    );
  });
});
