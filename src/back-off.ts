// The pause before a failed attempt is repeated. No other file computes such a pause.

export interface BackOff {
  /** Longest pause after the first failure, ms, > 0. Doubles with each further failure… */
  readonly pauseMs: number;
  /** …up to this pause. */
  readonly pauseMsMax: number;
}

/** Between half of the longest pause and the whole pause, ms.
 *  @param failures in a row, from 1
 *  @param chance in [0, 1]: spreads agents and clients that fail at the same moment; 1: the whole pause */
export function backOffMs({ pauseMs, pauseMsMax }: BackOff, failures: number, chance: number): number {
  const longestMs = Math.min(pauseMsMax, pauseMs * 2 ** (failures - 1));
  return longestMs * (0.5 + chance / 2);
}
