// How long a client waits before it asks again.

import { limits } from "../limits.ts";

/** How long to wait after the `failures`-th failure in a row, from 1; `chance` in [0, 1) spreads askers, so
 *  that they do not all come back to a new leader at once. */
export function backoffMs(failures: number, chance: number): number {
  const longest = Math.min(limits.askBackoffMsMax, limits.askBackoffMs * 2 ** (failures - 1));
  return longest * (0.5 + chance / 2);
}
