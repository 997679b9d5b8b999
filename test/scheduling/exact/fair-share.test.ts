// The budget document's arithmetic, section 3.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BudgetManager } from "../../../src/scheduling/exact/fair-share.ts";

const counts = fc.dictionary(fc.string({ maxLength: 4 }), fc.nat(1_000), { maxKeys: 8 });

describe("BudgetManager", () => {
  const manager = new BudgetManager();

  it("gives each its weight's share: 2 to 1 is two thirds to one third", () => {
    expect(manager.calculateTargetRatios({ a: 2, b: 1 })).toEqual({ a: 2 / 3, b: 1 / 3 });
  });

  it("has no ratios where the weights sum to 0", () => {
    expect(manager.calculateTargetRatios({})).toEqual({});
    expect(manager.calculateTargetRatios({ a: 0, b: 0 })).toEqual({});
    expect(manager.calculateDeficits({ a: 0 }, { a: 5 })).toEqual({});
  });

  it("computes how far each is behind: positive is behind, negative ahead", () => {
    expect(manager.calculateDeficits({ a: 1, b: 1 }, { a: 3, b: 1 })).toEqual({ a: -0.25, b: 0.25 });
  });

  it("takes the targets for deficits where nothing is used", () => {
    expect(manager.calculateDeficits({ a: 3, b: 1 }, {})).toEqual({ a: 0.75, b: 0.25 });
    expect(manager.calculateDeficits({ a: 1 }, { a: 0, gone: 0 })).toEqual({ a: 1 });
  });

  it("counts the use of projects without a weight in the total, and speaks of none", () => {
    expect(manager.calculateDeficits({ a: 1 }, { gone: 9 })).toEqual({ a: 1 });
    expect(manager.calculateDeficits({ a: 1 }, { a: 1, gone: 1 })).toEqual({ a: 0.5 });
  });

  it("has ratios in [0, 1] that sum to 1, and deficits that sum to 0 where all have weights", () => {
    fc.assert(
      fc.property(counts, counts, (weights, usage) => {
        const ratios = Object.values(manager.calculateTargetRatios(weights));
        for (const ratio of ratios) expect(ratio >= 0 && ratio <= 1).toBe(true);
        if (ratios.length > 0) expect(sum(ratios)).toBeCloseTo(1, 12);
        const known = Object.fromEntries(Object.keys(weights).map((key) => [key, usage[key] ?? 1]));
        const deficits = Object.values(manager.calculateDeficits(weights, known));
        if (deficits.length > 0 && sum(Object.values(known)) > 0) expect(sum(deficits)).toBeCloseTo(0, 12);
      }),
    );
  });

  it.each([
    [null, 1e9, false],
    [100, 99, false],
    [100, 100, true],
    [100, 101, true],
    [0, 0, true],
  ])("of a global budget of %s, %d used: exhausted %s", (budget, used, exhausted) => {
    expect(new BudgetManager(budget).isGlobalBudgetExhausted(used)).toBe(exhausted);
    expect(manager.isProjectBudgetExhausted(used, budget)).toBe(exhausted);
  });

  it.each([
    ["weights.a", () => manager.calculateTargetRatios({ a: Number.NaN })],
    ["weights.b", () => manager.calculateDeficits({ a: 1, b: -1 }, {})],
    ["usage.a", () => manager.calculateDeficits({ a: 1 }, { a: -1 })],
    ["globalBudget", () => new BudgetManager(-1)],
  ])("refuses a bad %s", (field, act) => {
    expect(act).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
  });
});

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
