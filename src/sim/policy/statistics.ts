// What a simulation's figures mean, in one place (docs/simulate.md repeats the definitions for readers).

/** The mean over seeds and half the width of its 95 % confidence interval. */
export interface Estimate {
  readonly mean: number;
  /** 1.96·s/√n with the sample's deviation s; 0 where chance has no part, null where one seed cannot tell. */
  readonly ci95: number | null;
}

/** @param values not empty · @param isDrawn whether another seed could give another value */
export function estimateOf(values: readonly number[], isDrawn: boolean): Estimate {
  const mean = meanOf(values);
  if (!isDrawn) return { mean, ci95: 0 };
  if (values.length < 2) return { mean, ci95: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, ci95: (1.96 * Math.sqrt(squares / (values.length - 1))) / Math.sqrt(values.length) };
}

/** 0 of nothing. */
export function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Jain's index `(Σx)² / (n·Σx²)` over all n, zeros included: 1 when all got the same, 1/n when one got all. 1
 * when nobody got anything.
 */
export function jainOf(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** The nearest-rank percentile: the smallest value that at least this share of all does not exceed.
 *  @param share (0, 1] · @returns 0 of nothing */
export function percentileOf(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** Of the largest. 0 of nothing. */
export function maximumOf(values: Iterable<number>): number {
  let maximum = 0;
  for (const value of values) if (value > maximum) maximum = value;
  return maximum;
}
