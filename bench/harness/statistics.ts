// Medians, quantiles, spreads and ratios of measured numbers.

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** @returns NaN without numbers */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The nearest rank: the smallest number that at least this share of all numbers does not exceed.
 *  @param share in (0, 1]
 *  @returns NaN without numbers */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** @returns undefined without numbers */
export function spreadOf(numbers: readonly number[]): Spread | undefined {
  if (numbers.length === 0) return undefined;
  return { median: median(numbers), least: Math.min(...numbers), most: Math.max(...numbers) };
}

/** Values of two systems, by round. Only a ratio within a round is meaningful on a shared machine.
 *  @returns one ratio per round that both have */
export function ratiosByRound(
  ours: ReadonlyMap<number, number>,
  theirs: ReadonlyMap<number, number>,
): readonly number[] {
  return [...ours].flatMap(([round, value]) => {
    const other = theirs.get(round);
    return other === undefined ? [] : [value / other];
  });
}
