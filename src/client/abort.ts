// Abort signals of others tied to our own work. `AbortSignal.any` would do, but on Node 20 each of its signals
// stays reachable from a long-lived one for ever.

/** A controller that aborts with any of `signals`, and lets go of them when aborted itself. Abort it when done. */
export function linkedTo(...signals: readonly (AbortSignal | undefined)[]): AbortController {
  const own = new AbortController();
  for (const signal of signals) {
    if (signal?.aborted) own.abort(signal.reason);
    else
      signal?.addEventListener("abort", () => own.abort(signal.reason), { once: true, signal: own.signal });
  }
  return own;
}
