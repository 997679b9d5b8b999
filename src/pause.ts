// Waiting on a clock that somebody may cut short. Not for polling: whoever can be told, waits to be told.

import type { Clock } from "./clock.ts";

/** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
export async function pause(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
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
