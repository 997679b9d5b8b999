// Waiting by the clock on the wall, until something ends the wait early.

import { systemClock } from "../clock.ts";
import { pause } from "../pause.ts";

/** Resolves after `ms`, or at once when `signal` aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await pause(systemClock, ms, signal);
}
