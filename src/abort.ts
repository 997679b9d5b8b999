// Many listeners on few abort signals. A caller's signal has a single listener, shared by all waits, and none without
// waits. More than ten listeners make Node warn of a leak, and the time to remove a listener grows with the number of
// listeners. On Node 20 `AbortSignal.any` keeps the result for as long as the sources live.

export class Aborts {
  readonly #waitsBySignal = new WeakMap<AbortSignal, Waits>();

  /** Calls `run` once when `signal` aborts. Returns a function to cancel the call. */
  on(signal: AbortSignal, run: () => void): () => void {
    const waits = this.#waitsBySignal.get(signal) ?? this.#listen(signal);
    waits.runs.add(run);
    return () => {
      const wasLast = waits.runs.delete(run) && waits.runs.size === 0;
      if (wasLast) this.#letGo(signal, waits);
    };
  }

  /** A controller aborted with any of `signals`. The caller aborts the controller at the end, to release the
   *  signals. */
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

  #listen(signal: AbortSignal): Waits {
    const runs = new Set<() => void>();
    const runAll = () => {
      const all = [...runs];
      runs.clear();
      for (const run of all) run();
    };
    const waits = { runs, runAll };
    this.#waitsBySignal.set(signal, waits);
    signal.addEventListener("abort", runAll, { once: true });
    return waits;
  }

  #letGo(signal: AbortSignal, waits: Waits): void {
    signal.removeEventListener("abort", waits.runAll);
    this.#waitsBySignal.delete(signal);
  }
}

/** The waits on a signal. */
interface Waits {
  readonly runs: Set<() => void>;
  /** Listens to the signal. */
  readonly runAll: () => void;
}
