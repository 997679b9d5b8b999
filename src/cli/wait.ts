// Waiting by the clock on the wall, until something ends the wait early.

import { setTimeout } from "node:timers/promises";

/** Resolves after `ms`, or at once when `signal` aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(ms, undefined, { signal });
  } catch {
    // aborted: whoever waits looks at the signal
  }
}
