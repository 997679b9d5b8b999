// When to look again at a stream that does not answer: soon, then later, and at once when the connection
// changes; and when to give up.

import { UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";

export interface RetryOptions {
  /** Ends any pause. */
  readonly signal: AbortSignal;
  /** How long it may be without progress. Undefined: for ever. */
  readonly patienceMs?: number;
}

export class Retry {
  readonly #signal: AbortSignal;
  readonly #patienceMs: number;
  readonly #onChange: (listener: () => void) => () => void;
  #pauseMs: number = limits.journalRetryMs;
  #progressAt = performance.now();

  /** @param onChange calls its listener when it is worth looking again; returns what stops that */
  constructor({ signal, patienceMs }: RetryOptions, onChange: (listener: () => void) => () => void) {
    this.#signal = signal;
    this.#patienceMs = patienceMs ?? Number.POSITIVE_INFINITY;
    this.#onChange = onChange;
  }

  /** There was progress. */
  reset(): void {
    this.#pauseMs = limits.journalRetryMs;
    this.#progressAt = performance.now();
  }

  /** @throws `reason` when patience has ended */
  async pause(reason?: unknown): Promise<void> {
    if (performance.now() - this.#progressAt >= this.#patienceMs) {
      throw reason ?? new UnreachableError("the stream's reader keeps breaking: see the NATS server's log");
    }
    await this.#wait(this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, limits.journalRetryMsMax);
  }

  #wait(ms: number): Promise<void> {
    if (this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        stop();
        this.#signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      const stop = this.#onChange(end);
      this.#signal.addEventListener("abort", end);
    });
  }
}
