// The use of an agent type's rate, and when time alone frees tokens. Gates: gates.test.ts.

import { describe, expect, it } from "vitest";
import { instant } from "../../src/ids.ts";
import { emptyUse, opensAt, recordUse, usedOf, usedReturns } from "../../src/state/rate.ts";
import type { RateSettings } from "../../src/state/settings.ts";

const began = 1_000_000_000;
const at = (ms: number) => instant(began + ms);
const aRate = (overrides: Partial<RateSettings> = {}): RateSettings => ({
  window: "per_minute",
  tokensMax: 10,
  sliding: false,
  ...overrides,
});

/** The given uses, each at an instant in ms. */
function useOf(rate: RateSettings, ...uses: readonly (readonly [afterMs: number, tokens: number])[]) {
  const use = emptyUse(rate.window, at(0));
  for (const [afterMs, tokens] of uses) recordUse(use, tokens, at(afterMs));
  return use;
}

describe("a window that restarts", () => {
  it.each([
    ["per_minute", 60_000],
    ["per_hour", 3_600_000],
    ["per_day", 86_400_000],
  ] as const)("has expired when more than its length has passed: %s", (window, lengthMs) => {
    const rate = aRate({ window });
    const use = useOf(rate, [0, 10]);
    expect([usedOf(use, rate, at(lengthMs)), usedOf(use, rate, at(lengthMs + 1))]).toEqual([10, 0]);
    expect(opensAt(use, rate, at(0))).toBe(began + lengthMs + 1);
  });

  it("returns all used tokens at once", () => {
    const rate = aRate();
    const use = useOf(rate, [0, 3], [20_000, 4]);
    const all = began + 60_001;
    expect(usedReturns(use, rate, at(20_000))).toEqual({ freesAt: all, emptyAt: all });
    expect(usedReturns(use, rate, at(60_001))).toBeUndefined();
  });

  it("restarts with the first use after its end", () => {
    const rate = aRate();
    const use = useOf(rate, [0, 10], [70_000, 4]);
    expect([usedOf(use, rate, at(130_000)), usedOf(use, rate, at(130_001))]).toEqual([4, 0]);
  });
});

it("a window that slides returns used tokens step by step", () => {
  const rate = aRate({ sliding: true });
  const use = useOf(rate, [0, 3], [20_000, 4]);
  const { freesAt = 0, emptyAt = 0 } = usedReturns(use, rate, at(20_000)) ?? {};
  const used = (instants: readonly number[]) => instants.map((each) => usedOf(use, rate, instant(each)));
  expect(used([freesAt - 1, freesAt, emptyAt - 1, emptyAt])).toEqual([7, 4, 4, 0]);
  expect(usedReturns(use, rate, instant(emptyAt))).toBeUndefined();
});

describe.each([true, false])("what open attempts reserve (sliding: %s)", (sliding) => {
  const rate = aRate({ sliding });

  it("counts as use until they end", () => {
    const use = useOf(rate, [0, 5]);
    expect(opensAt(use, rate, at(0), 4)).toBe(began);
    expect(opensAt(use, rate, at(0), 5)).toBeGreaterThan(began + 59_000);
  });

  it("leaves room by time alone only while a token is left", () => {
    const use = useOf(rate, [0, 5]);
    const opens = opensAt(use, rate, at(0), 9);
    expect(opens).toBeGreaterThan(began + 59_000);
    expect(usedOf(use, rate, opens ?? at(0))).toBe(0);
    expect(opensAt(use, rate, at(0), 10)).toBeUndefined();
  });
});
