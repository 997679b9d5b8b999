// When to look again at a stream that does not answer: soon, then later, and at once when the connection
// changes; and when to give up.

import { Aborts } from "../abort.ts";
import type { Clock } from "../clock.ts";
import { UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";

export interface RetryOptions {
  readonly clock: Clock;
  /** Ends any pause. */
  readonly signal: AbortSignal;
  /** How long it may be without progress. Undefined: for ever. */
  readonly patienceMs?: number;
}

/** Many retries at once may end with one signal: the parts of a snapshot are read side by side. */
const aborts = new Aborts();

export class Retry {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #patienceMs: number;
  readonly #onChange: (listener: () => void) => () => void;
  #pauseMs: number = limits.journalRetryMs;
  #progressAt: number;

  /** @param onChange calls its listener when it is worth looking again; returns what stops that */
  constructor({ clock, signal, patienceMs }: RetryOptions, onChange: (listener: () => void) => () => void) {
    this.#clock = clock;
    this.#progressAt = clock.monotonicMs();
    this.#signal = signal;
    this.#patienceMs = patienceMs ?? Number.POSITIVE_INFINITY;
    this.#onChange = onChange;
  }

  /** There was progress. */
  reset(): void {
    this.#pauseMs = limits.journalRetryMs;
    this.#progressAt = this.#clock.monotonicMs();
  }

  /** @throws `reason` when patience has ended */
  async pause(reason?: unknown): Promise<void> {
    if (this.#clock.monotonicMs() - this.#progressAt >= this.#patienceMs) {
      throw reason ?? new UnreachableError("the stream's reader keeps breaking: see the NATS server's log");
    }
    await this.#wait(this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, limits.journalRetryMsMax);
  }

  #wait(ms: number): Promise<void> {
    if (this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        stop();
        letGo();
        resolve();
      };
      const cancel = this.#clock.after(ms, end);
      const stop = this.#onChange(end);
      const letGo = aborts.on(this.#signal, end);
    });
  }
}
