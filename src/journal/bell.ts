// Wakes all waiters at a change. Not a queue: a woken waiter looks for itself what changed.
// Looking and then waiting loses no ring, because nothing runs between the two.

export class Bell {
  readonly #waiting = new Set<() => void>();

  ring(): void {
    const woken = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of woken) wake();
  }

  /** Resolves at the next ring, or when `signal` aborts, whichever is first. */
  wait(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake);
    });
  }
}
