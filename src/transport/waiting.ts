// Waiting for something that cannot be called off: until a signal aborts, or for so long.

import { systemClock } from "../clock.ts";

/** What comes although nobody waits any more is given to `discard`.
 *  @throws the signal's reason when it aborts first */
export async function unlessAborted<Value>(
  coming: Promise<Value>,
  signal: AbortSignal | undefined,
  discard: (late: Value) => unknown,
): Promise<Value> {
  if (signal === undefined) return await coming;
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([coming, aborted]);
  } catch (error) {
    if (signal.aborted) void coming.then(discard).catch(() => undefined); // the caller knows already
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Neither rejects nor waits longer than `ms`. */
export async function settledWithin(coming: Promise<unknown>, ms: number): Promise<void> {
  let cancel: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    cancel = systemClock.after(ms, resolve);
  });
  await Promise.race([coming.catch(() => undefined), late]);
  cancel();
}
