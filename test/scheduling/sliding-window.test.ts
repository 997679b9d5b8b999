// The window that slides: held to a naive one that remembers every use.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SlidingWindow } from "../../src/scheduling/sliding-window.ts";

const length = 60;
const bucket = 1;
const use = fc.record({
  after: fc.double({ min: 0, max: 20, noNaN: true }),
  amount: fc.nat(100),
});

describe("SlidingWindow", () => {
  it("counts all of the window and at most one bucket more: the stated bound", () => {
    fc.assert(
      fc.property(
        fc.array(use, { maxLength: 60 }),
        fc.double({ min: 0, max: 80, noNaN: true }),
        (uses, later) => {
          const window = new SlidingWindow({ length, most: 100 });
          const known: { at: number; amount: number }[] = [];
          let now = 1_000;
          for (const { after, amount } of uses) {
            now += after;
            window.record(amount, now);
            known.push({ at: now, amount });
          }
          const asked = now + later;
          const since = (from: number) =>
            known.filter(({ at }) => at > from).reduce((total, { amount }) => total + amount, 0);
          const used = window.usedAt(asked);
          expect(used).toBeGreaterThanOrEqual(since(asked - length));
          expect(used).toBeLessThanOrEqual(since(asked - length - bucket - 1e-6));
        },
      ),
    );
  });

  it("never lets more than its bound through in any true window", () => {
    fc.assert(
      fc.property(fc.array(use, { maxLength: 80 }), (uses) => {
        const window = new SlidingWindow({ length, most: 50 });
        const passed: { at: number; amount: number }[] = [];
        let now = 0;
        for (const { after } of uses) {
          now += after;
          if (window.isExceeded(now)) continue;
          window.record(1, now);
          passed.push({ at: now, amount: 1 });
          expect(passed.filter(({ at }) => at > now - length).length).toBeLessThanOrEqual(50);
        }
      }),
    );
  });

  it("does not reset: what was used a moment before a minute's end still counts after it", () => {
    const window = new SlidingWindow({ length, most: 100 });
    window.record(99, 1_059.9);
    expect(window.usedAt(1_060.1)).toBe(99);
    expect(window.usedAt(1_060.1 + length + bucket)).toBe(0);
  });

  it("says how long a full one stays full", () => {
    const window = new SlidingWindow({ length, most: 10 });
    window.record(4, 100.5);
    window.record(8, 110.5);
    expect(window.untilFree(111)).toBe(161 - 111);
    expect(window.isExceeded(160.99)).toBe(true);
    expect(window.isExceeded(161)).toBe(false);
    expect(window.untilFree(161)).toBe(0);
    expect(new SlidingWindow({ length, most: 0 }).untilFree(0)).toBe(Number.POSITIVE_INFINITY);
  });

  it("takes a clock that went back for one that stood", () => {
    const window = new SlidingWindow({ length, most: 1 });
    for (let at = 0; at < 1_000; at += 0.5) window.record(1, at);
    expect(window.usedAt(1_000)).toBe(120);
    window.record(1, 10);
    expect(window.usedAt(999.5)).toBe(123);
  });

  it.each([
    ["length", () => new SlidingWindow({ length: 0, most: 1 })],
    ["most", () => new SlidingWindow({ length, most: Number.NaN })],
    ["amount", () => new SlidingWindow({ length, most: 1 }).record(-1, 0)],
  ])("refuses a bad %s", (field, act) => {
    expect(act).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
  });
});
