// Rounding of shares and scores for display: in receipts, in status. No decision uses a rounded value.

/** To 4 decimals. */
export function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
