// A wait on a clock that can be cut short. Not for polling: prefer to wait for a notification.

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
