// 2^−x without Math.pow.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { powerOfHalf } from "../../src/state/forgetting.ts";

const halvings = fc.double({ min: 0, max: 60, noNaN: true });

describe("powerOfHalf", () => {
  it("is exact at whole halvings and 0 once nothing is left", () => {
    expect([0, 1, 2, 10].map(powerOfHalf)).toEqual([1, 0.5, 0.25, 1 / 1024]);
    expect(powerOfHalf(1074)).toBe(Number.MIN_VALUE);
    expect(powerOfHalf(1e9)).toBe(0);
    expect(powerOfHalf(Number.POSITIVE_INFINITY)).toBe(0);
  });

  it("is 2^−x to a double's resolution, and in [0, 1]", () => {
    fc.assert(
      fc.property(halvings, (x) => {
        expect(Math.abs(powerOfHalf(x) / 2 ** -x - 1)).toBeLessThan(1e-14);
        expect(powerOfHalf(x)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("does not depend on the number of steps", () => {
    let remembered = 1;
    for (let step = 0; step < 1000; step += 1) remembered *= powerOfHalf(3 / 1000);
    expect(remembered).toBeCloseTo(powerOfHalf(3), 12);
  });

  it("gives the same bits as ever, because replay depends on them", () => {
    expect([1 / 50, 1 / 3, 0.999, 7.25].map(powerOfHalf)).toEqual([
      0.9862327044933592, 0.7937005259840998, 0.5003466937312904, 0.006569503244169645,
    ]);
  });
});
