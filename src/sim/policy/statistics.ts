// Definitions of a simulation's figures; docs/simulate.md repeats the definitions for readers.

/** The mean over seeds and half the width of its 95 % confidence interval. */
export interface Estimate {
  readonly mean: number;
  /** t·s/√n with the sample's deviation s and Student's t; 0 without randomness, null for a single seed. */
  readonly ci95: number | null;
}

/** @param values not empty
 *  @param isDrawn true if a different seed could give a different value */
export function estimateOf(values: readonly number[], isDrawn: boolean): Estimate {
  const mean = meanOf(values);
  if (!isDrawn) return { mean, ci95: 0 };
  if (values.length < 2) return { mean, ci95: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (values.length - 1));
  return { mean, ci95: (studentT95(values.length - 1) * deviation) / Math.sqrt(values.length) };
}

/** The standard normal distribution's counterpart of t. */
const normal95 = 1.959963984540054;
/** The 0.975 quantiles of Student's t with 1, 2, … degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2). */
const quantiles = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The 0.975 quantile of Student's t, within 0.001: a table up to 30 degrees of freedom, then the first terms
 *  of the Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5).
 *
 *  @param degrees degrees of freedom, ≥ 1, whole */
export function studentT95(degrees: number): number {
  const known = quantiles[degrees - 1];
  if (known !== undefined) return known;
  const z = normal95;
  return z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2);
}

/** 0 for an empty list. */
export function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Jain's index `(Σx)² / (n·Σx²)` over all n, zeros included: 1 for equal shares, 1/n when a single user got
 *  all. 1 when all shares are 0. */
export function jainOf(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** The nearest-rank percentile: the smallest value that at least this share of all values does not exceed.
 *  @param share (0, 1]
 *  @returns 0 for an empty list */
export function percentileOf(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** The largest value; 0 for an empty list. */
export function maximumOf(values: Iterable<number>): number {
  let maximum = 0;
  for (const value of values) if (value > maximum) maximum = value;
  return maximum;
}
