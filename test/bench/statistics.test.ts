// Medians, spreads and ratios of the benchmark's rounds.

import { describe, expect, it } from "vitest";
import { median, quantile, ratiosByRound, spreadOf } from "../../bench/harness/statistics.ts";

describe("the median", () => {
  it.each([
    [[3], 3],
    [[5, 1, 3], 3],
    [[4, 1, 3, 2], 2.5],
    [[10, 9], 9.5],
  ])("of %j is %s", (numbers, expected) => {
    expect(median(numbers)).toBe(expected);
  });

  it("of nothing is no number, and leaves the numbers in their order", () => {
    const numbers = [3, 1, 2];
    expect(median([])).toBeNaN();
    expect(median(numbers)).toBe(2);
    expect(numbers).toEqual([3, 1, 2]);
  });
});

describe("a quantile", () => {
  it.each([
    [[5, 1, 4, 2, 3], 0.5, 3],
    [Array.from({ length: 100 }, (_, at) => at + 1), 0.99, 99],
    [Array.from({ length: 20 }, (_, at) => at + 1), 0.95, 19],
    [[7], 0.01, 7],
    [[1, 2], 1, 2],
  ])("of %j at %s is %s, the nearest rank", (numbers, share, expected) => {
    expect(quantile(numbers, share)).toBe(expected);
  });

  it("of nothing is no number", () => {
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe("a spread", () => {
  it("has median, least and most", () => {
    expect(spreadOf([2, 9, 4])).toEqual({ median: 4, least: 2, most: 9 });
  });

  it("of nothing is undefined", () => {
    expect(spreadOf([])).toBeUndefined();
  });
});

describe("ratios", () => {
  it("pair the values of a round, and leave out rounds that one system lacks", () => {
    const ours = new Map([
      [1, 10],
      [2, 30],
      [3, 5],
    ]);
    const theirs = new Map([
      [1, 20],
      [3, 5],
      [4, 1],
    ]);
    expect(ratiosByRound(ours, theirs)).toEqual([0.5, 1]);
  });
});
