// The definitions behind every figure, on numbers worked out by hand.

import { describe, expect, it } from "vitest";
import { estimateOf, jainOf, percentileOf, studentT95 } from "../../src/sim/policy/statistics.ts";

describe("an estimate", () => {
  it("is the mean and t·s/√n with the sample's deviation and Student's t", () => {
    expect(estimateOf([1, 2, 3, 4], true)).toEqual({ mean: 2.5, ci95: (3.182 * Math.sqrt(5 / 3)) / 2 });
  });

  it("of one seed has no interval, unless the scenario is deterministic", () => {
    expect(estimateOf([7], true)).toEqual({ mean: 7, ci95: null });
    expect(estimateOf([7], false)).toEqual({ mean: 7, ci95: 0 });
  });
});

it.each([
  [1, 12.706],
  [2, 4.303],
  [7, 2.365],
  [19, 2.093],
  [30, 2.042],
  [31, 2.04],
  [40, 2.021],
  [60, 2],
  [100, 1.984],
  [1000, 1.962],
])("Student's t with %d degrees of freedom is %d", (degrees, published) => {
  expect(Math.abs(studentT95(degrees) - published)).toBeLessThan(0.001);
});

it.each([
  [[1, 1, 1, 1], 1],
  [[1, 0, 0, 0], 0.25],
  [[4, 2], 0.9],
  [[0, 0], 1],
])("Jain's index of %j is %d, zeros included", (shares, index) => {
  expect(jainOf(shares)).toBeCloseTo(index, 12);
});

it.each([
  [0.5, 5],
  [0.99, 10],
  [0.1, 1],
  [1, 10],
])("the nearest rank: %d of 1 to 10 is %d", (share, value) => {
  expect(percentileOf([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share)).toBe(value);
});
