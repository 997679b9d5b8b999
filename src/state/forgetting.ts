// The remembered share of past outcomes: 2^−x by basic arithmetic alone. Not `Math.pow` or `Math.exp`: the language
// leaves their last digits to the engine, and a replay on another engine would score differently. Addition,
// multiplication and division are exact to the bit everywhere.

/** Terms of the series of e^−y; for y ≤ ln 2 the next term is below a double's resolution. */
const seriesTerms = 17;
/** Halvings after which nothing of a double is left. */
const halvingsUntilNothing = 1075;

/**
 * 2^−halvings, within some 10⁻¹⁶ and with the same bits on every engine: whole halvings by ½, the fraction by the
 * series of e^−y. A straight line between the halvings would be simpler. But then the result would depend on the number
 * of updates: (1 − x/2)ⁿ of n small steps differs from one step of their length.
 *
 * @param halvings ≥ 0, not necessarily whole
 */
export function powerOfHalf(halvings: number): number {
  if (halvings >= halvingsUntilNothing) return 0;
  const whole = Math.floor(halvings);
  let remembered = fractionOfHalf(halvings - whole);
  for (let n = 0; n < whole; n += 1) remembered *= 0.5;
  return remembered;
}

/** e^−y = 1 − y/1·(1 − y/2·(1 − y/3·(…))), from the inside out. */
function fractionOfHalf(fraction: number): number {
  const y = fraction * Math.LN2;
  let series = 1;
  for (let n = seriesTerms; n >= 1; n -= 1) series = 1 - (y * series) / n;
  return series;
}
