// Waits for promises that cannot be cancelled: until a signal aborts, or for a limited time.

import { systemClock } from "../clock.ts";

/** A value that comes after the abort goes to `discard`.
 *  @throws the signal's reason when the signal aborts first */
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
    if (signal.aborted) void coming.then(discard).catch(() => undefined); // the caller has an error already
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Never rejects, and never waits longer than `ms`. */
export async function settledWithin(coming: Promise<unknown>, ms: number): Promise<void> {
  let cancel: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    cancel = systemClock.after(ms, resolve);
  });
  await Promise.race([coming.catch(() => undefined), late]);
  cancel();
}
