// log₂ by basic arithmetic alone, for the reason in forgetting.ts: engines disagree on the last digits of `Math.log2`,
// and a replay on another engine would score differently.

import { assert } from "../assert.ts";

/** Terms of the series; for mantissas in [½√2, √2] the next term is below a double's resolution. */
const seriesTerms = 12;

/**
 * log₂ of a value, within some 10⁻¹⁵ and with the same bits on every engine: the exponent by halving, which is exact,
 * the mantissa by ln m = 2·artanh((m − 1)/(m + 1)).
 *
 * @param value > 0 and finite
 */
export function logarithm2(value: number): number {
  assert(value > 0 && value < Number.POSITIVE_INFINITY, "only positive values have a logarithm");
  let exponent = 0;
  let mantissa = value;
  for (; mantissa > Math.SQRT2; exponent += 1) mantissa *= 0.5;
  for (; mantissa < Math.SQRT1_2; exponent -= 1) mantissa *= 2;
  const y = (mantissa - 1) / (mantissa + 1);
  const square = y * y;
  let series = 0;
  for (let n = seriesTerms; n >= 0; n -= 1) series = 1 / (2 * n + 1) + square * series;
  return exponent + (2 * y * series) / Math.LN2;
}
