// The rolling window against a list of all uses: nothing leaves too early, and nothing stays longer than the stated
// error.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Instant, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import {
  addTokens,
  emptyWindow,
  fallsTo,
  nextChangeAt,
  type RollingWindow,
  roll,
  totalAt,
} from "../../src/state/rolling-window.ts";

interface Use {
  readonly at: number;
  readonly tokens: number;
}

const minute = 60_000;

function windowWith(windowMs: number, uses: readonly Use[]): RollingWindow {
  const window = emptyWindow(windowMs);
  for (const { at, tokens } of uses) addTokens(window, tokens, instant(at));
  return window;
}

function usedSince(uses: readonly Use[], from: number): number {
  return uses.filter(({ at }) => at > from).reduce((sum, { tokens }) => sum + tokens, 0);
}

const uses = fc
  .array(fc.record({ pass: fc.nat(4_000), tokens: fc.nat(1_000) }), { maxLength: 200 })
  .map((steps) => {
    let at = 1_000_000;
    return steps.map(({ pass, tokens }): Use => {
      at += pass;
      return { at, tokens };
    });
  });
const windowMs = fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 200_000 }));

describe("a rolling window", () => {
  it("counts every token for the window, and at most two steps longer", () => {
    fc.assert(
      fc.property(uses, windowMs, fc.nat(300_000), fc.nat(), (recorded, length, later, pick) => {
        const window = windowWith(length, recorded);
        // At random, or at the last instant at which some use still counts.
        const one = recorded[pick % Math.max(1, recorded.length)];
        const leaves = pick % 2 === 0 || one === undefined ? 0 : one.at + length - 1;
        const at = instant(Math.max(leaves, (recorded.at(-1)?.at ?? 0) + (leaves === 0 ? later : 0)));
        const stepMs = Math.ceil(length / limits.windowBuckets);
        const total = totalAt(window, at);
        expect(total).toBeGreaterThanOrEqual(usedSince(recorded, at - length));
        expect(total).toBeLessThanOrEqual(usedSince(recorded, at - length - 2 * stepMs));
        expect(window.buckets.length).toBeLessThanOrEqual(limits.windowBuckets + 1);
      }),
    );
  });

  it("counts at most one step longer where the steps divide it", () => {
    const window = windowWith(minute, [{ at: 120_000, tokens: 5 }]);
    expect(totalAt(window, instant(120_000 + minute))).toBe(5);
    expect(totalAt(window, instant(120_000 + minute + 999))).toBe(5);
    expect(totalAt(window, instant(120_000 + minute + 1_000))).toBe(0);
  });

  it("says when its total falls next, and it does not fall before", () => {
    fc.assert(
      fc.property(uses, windowMs, fc.nat(100_000), (recorded, length, later) => {
        const window = windowWith(length, recorded);
        const at = instant((recorded.at(-1)?.at ?? 0) + later);
        const next = nextChangeAt(window, at);
        const total = totalAt(window, at);
        if (next === undefined) {
          expect(total).toBe(0);
          return;
        }
        expect(next).toBeGreaterThan(at);
        expect(totalAt(window, instant(next - 1))).toBe(total);
        expect(totalAt(window, next)).toBeLessThan(total);
      }),
    );
  });

  it("says when the total falls to an amount", () => {
    fc.assert(
      fc.property(uses, windowMs, fc.nat(5_000), (recorded, length, tokensMax) => {
        const window = windowWith(length, recorded);
        const at = (recorded.at(-1)?.at ?? 0) as Instant;
        const opens = fallsTo(window, tokensMax, at);
        expect(totalAt(window, opens)).toBeLessThanOrEqual(tokensMax);
        if (opens > at) expect(totalAt(window, instant(opens - 1))).toBeGreaterThan(tokensMax);
      }),
    );
  });

  it("gives the same answers after dropping buckets that left", () => {
    fc.assert(
      fc.property(uses, windowMs, fc.nat(100_000), (recorded, length, later) => {
        const window = windowWith(length, recorded);
        const at = instant((recorded.at(-1)?.at ?? 0) + later);
        const before = [totalAt(window, at), nextChangeAt(window, at)];
        roll(window, at);
        expect([totalAt(window, at), nextChangeAt(window, at)]).toEqual(before);
        expect(window.held).toBe(before[0]);
      }),
    );
  });

  it("refuses fractions of tokens, and invalid lengths", () => {
    expect(() => addTokens(emptyWindow(minute), 0.5, instant(0))).toThrow(/whole numbers/);
    expect(() => addTokens(emptyWindow(minute), -1, instant(0))).toThrow(/whole numbers/);
    expect(() => emptyWindow(0)).toThrow(/whole milliseconds/);
  });
});
