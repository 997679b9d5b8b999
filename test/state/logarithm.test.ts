// log₂ by basic arithmetic.

import fc from "fast-check";
import { expect, it } from "vitest";
import { logarithm2 } from "../../src/state/logarithm.ts";

it("is exact for powers of two", () => {
  for (let n = -40; n <= 40; n += 1) expect(logarithm2(2 ** n)).toBe(n);
});

it("agrees with the engine's to the last digits", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e15, noNaN: true }), (value) => {
      expect(Math.abs(logarithm2(value) - Math.log2(value))).toBeLessThan(1e-13);
    }),
  );
});

it("refuses values without a logarithm", () => {
  for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => logarithm2(value)).toThrow(/logarithm/);
});
