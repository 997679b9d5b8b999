// Waiting on a clock that somebody may cut short. Not for polling: whoever can be told, waits to be told.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

/** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
export async function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** How long to wait after the `failures`-th failure in a row, from 1; `chance` in [0, 1) spreads askers, so
 *  that they do not all come back to a new leader at once. */
export function backoffMs(failures: number, chance: number): number {
  const longest = Math.min(limits.askBackoffMsMax, limits.askBackoffMs * 2 ** (failures - 1));
  return longest * (0.5 + chance / 2);
}
