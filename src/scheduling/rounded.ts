// How shares and scores are shown: in receipts, in status. Nothing is decided on what is rounded here.

/** To 4 decimals. */
export function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
