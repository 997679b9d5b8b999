// The sliding rate limit against a naive one that remembers every use.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SlidingWindow } from "../../src/scheduling/sliding-window.ts";

const windowMs = 60_000;
const stepMs = 1_000;
const uses = fc.array(fc.record({ afterMs: fc.nat(20_000), tokens: fc.nat(100) }), { maxLength: 60 });

describe("SlidingWindow", () => {
  it("counts all of the window and at most one step more: the stated bound", () => {
    fc.assert(
      fc.property(uses, fc.nat(80_000), (all, laterMs) => {
        const window = new SlidingWindow({ windowMs, maxTokens: 100 });
        const known: { at: number; tokens: number }[] = [];
        let now = 1_000_000;
        for (const { afterMs, tokens } of all) {
          now += afterMs;
          window.record(tokens, now);
          known.push({ at: now, tokens });
        }
        const asked = now + laterMs;
        const since = (from: number) =>
          known.filter(({ at }) => at > from).reduce((total, { tokens }) => total + tokens, 0);
        expect(window.usedAt(asked)).toBeGreaterThanOrEqual(since(asked - windowMs));
        expect(window.usedAt(asked)).toBeLessThanOrEqual(since(asked - windowMs - stepMs));
      }),
    );
  });

  it("never lets more than its bound through in any true window", () => {
    fc.assert(
      fc.property(uses, (all) => {
        const window = new SlidingWindow({ windowMs, maxTokens: 10 });
        const passed: number[] = [];
        let now = 0;
        for (const { afterMs } of all) {
          now += afterMs;
          if (window.isExceeded(now)) continue;
          window.record(1, now);
          passed.push(now);
          expect(passed.filter((at) => at > now - windowMs).length).toBeLessThanOrEqual(10);
        }
      }),
    );
  });

  it("does not reset: use just before a minute's end still counts after it", () => {
    const window = new SlidingWindow({ windowMs, maxTokens: 100 });
    window.record(99, 59_900);
    expect(window.usedAt(60_100)).toBe(99);
    expect(window.usedAt(59_900 + windowMs + stepMs)).toBe(0);
  });

  it("says until when a full window stays full", () => {
    const window = new SlidingWindow({ windowMs, maxTokens: 10 });
    window.record(4, 100_500);
    window.record(8, 110_500);
    expect(window.freeAt(111_000)).toBe(161_000);
    expect(window.isExceeded(160_999)).toBe(true);
    expect(window.isExceeded(161_000)).toBe(false);
    expect(window.freeAt(161_000)).toBe(161_000);
    expect(new SlidingWindow({ windowMs, maxTokens: 0 }).freeAt(0)).toBe(Number.POSITIVE_INFINITY);
  });

  it("treats a clock set back like a stopped clock", () => {
    const window = new SlidingWindow({ windowMs, maxTokens: 10 });
    window.record(3, 100_000);
    window.record(4, 10_000);
    expect(window.usedAt(159_000)).toBe(7);
    expect(window.usedAt(161_000)).toBe(0);
  });

  it.each([
    ["windowMs", () => new SlidingWindow({ windowMs: 0, maxTokens: 1 })],
    ["maxTokens", () => new SlidingWindow({ windowMs, maxTokens: Number.NaN })],
    ["tokens", () => new SlidingWindow({ windowMs, maxTokens: 1 }).record(-1, 0)],
    ["now", () => new SlidingWindow({ windowMs, maxTokens: 1 }).record(1, Number.NaN)],
  ])("refuses a bad %s", (field, act) => {
    expect(act).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
  });
});
