// Randomness is seeded, split by purpose, and distributed as documented.

import { describe, expect, it } from "vitest";
import { meanOf } from "../../src/sim/policy/statistics.ts";
import { SeededRandom } from "../../src/sim/random.ts";

const draws = (count: number, draw: () => number) => Array.from({ length: count }, draw);

describe("a seed", () => {
  it("gives the same draws, and another seed others", () => {
    const [first, again, other] = ["1", "1", "2"].map((seed) => new SeededRandom(seed));
    const row = draws(100, () => (first as SeededRandom).fraction());
    expect(draws(100, () => (again as SeededRandom).fraction())).toEqual(row);
    expect(draws(100, () => (other as SeededRandom).fraction())).not.toEqual(row);
  });

  it("gives a purpose the same stream however much was drawn before", () => {
    const fresh = new SeededRandom("1");
    const used = new SeededRandom("1");
    draws(57, () => used.fraction());
    expect(used.split("arrivals").fraction()).toBe(fresh.split("arrivals").fraction());
    expect(fresh.split("arrivals").fraction()).not.toBe(fresh.split("sizes").fraction());
  });

  it("is known: what it draws may not change without new figures in docs/results.md", () => {
    const random = new SeededRandom("loco-overload/0");
    expect(draws(3, () => random.below(1_000_000))).toEqual([559_061, 934_442, 26_763]);
  });
});

describe("draws", () => {
  const random = new SeededRandom("distributions");
  const COUNT = 40_000;

  it("are uniform in [0, 1)", () => {
    const fractions = draws(COUNT, () => random.fraction());
    expect(fractions.every((x) => x >= 0 && x < 1)).toBe(true);
    const tenths = Array.from(
      { length: 10 },
      (_, at) => fractions.filter((x) => Math.floor(x * 10) === at).length,
    );
    for (const count of tenths) expect(Math.abs(count - COUNT / 10)).toBeLessThan(5 * Math.sqrt(COUNT / 10));
  });

  it.each([0.04, 0.4, 2.5])("are Poisson with mean and variance %d", (mean) => {
    const counts = draws(COUNT, () => random.poisson(mean));
    const variance = meanOf(counts.map((count) => (count - mean) ** 2));
    expect(Math.abs(meanOf(counts) - mean)).toBeLessThan(5 * Math.sqrt(mean / COUNT));
    expect(Math.abs(variance / mean - 1)).toBeLessThan(0.1);
  });

  it("are exponential: of mean 3, and above it with a chance of 1/e", () => {
    const times = draws(COUNT, () => random.exponential(3));
    expect(Math.abs(meanOf(times) - 3)).toBeLessThan(0.08);
    expect(times.filter((time) => time > 3).length / COUNT).toBeCloseTo(1 / Math.E, 1);
  });

  it("are Zipf: rank r is 1/(r+1)^1.1 as frequent as the first", () => {
    const next = random.zipf(50, 1.1);
    const counts = new Array<number>(50).fill(0);
    for (const rank of draws(COUNT, next)) counts[rank] = (counts[rank] ?? 0) + 1;
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(COUNT);
    for (const rank of [1, 3, 9]) {
      const expected = (counts[0] ?? 0) / (rank + 1) ** 1.1;
      expect(Math.abs((counts[rank] ?? 0) - expected)).toBeLessThan(6 * Math.sqrt(expected));
    }
  });
});
