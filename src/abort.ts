// Many listeners to few abort signals. A signal of the caller's gets one listener of ours, however many waits
// share it: more than ten make Node warn of a leak, removing one takes as long as there are others, and on
// Node 20 `AbortSignal.any` keeps what it makes for as long as its sources live.

export class Aborts {
  readonly #listenersBySignal = new WeakMap<AbortSignal, Set<() => void>>();

  /** Calls `run` once when `signal` aborts. Returns a function that stops it. */
  on(signal: AbortSignal, run: () => void): () => void {
    const listeners = this.#listenersBySignal.get(signal) ?? this.#listen(signal);
    listeners.add(run);
    return () => listeners.delete(run);
  }

  /** A controller that aborts with any of `signals`, and lets go of them when aborted itself. Abort it when
   *  done. */
  linkedTo(...signals: readonly (AbortSignal | undefined)[]): AbortController {
    const own = new AbortController();
    for (const signal of signals) {
      if (signal?.aborted) own.abort(signal.reason);
      if (signal === undefined || own.signal.aborted) continue;
      const letGo = this.on(signal, () => own.abort(signal.reason));
      own.signal.addEventListener("abort", letGo, { once: true });
    }
    return own;
  }

  #listen(signal: AbortSignal): Set<() => void> {
    const listeners = new Set<() => void>();
    this.#listenersBySignal.set(signal, listeners);
    signal.addEventListener("abort", () => runAll(listeners), { once: true });
    return listeners;
  }
}

function runAll(listeners: Set<() => void>): void {
  const all = [...listeners];
  listeners.clear();
  for (const run of all) run();
}
