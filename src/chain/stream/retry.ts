// When to ask a stream again that does not answer: soon, then later, and at once when the connection changes; and when
// to give up.

import { Aborts } from "../../abort.ts";
import type { Clock } from "../../clock.ts";
import { UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { StreamWire } from "./wire.ts";

export interface RetryOptions {
  readonly wire: Pick<StreamWire, "onStatus">;
  readonly clock: Clock;
  /** Ends any pause. */
  readonly signal?: AbortSignal | undefined;
  /** Time without progress after which a pause throws. Default: never. */
  readonly patienceMs?: number | undefined;
}

/** Many readers may end with one signal. */
const aborts = new Aborts();

export class Retry {
  readonly #options: RetryOptions;
  #pauseMs: number = limits.journalRetryMs;
  #progressAt: number;

  constructor(options: RetryOptions) {
    this.#options = options;
    this.#progressAt = options.clock.monotonicMs();
  }

  /** There was progress. */
  reset(): void {
    this.#pauseMs = limits.journalRetryMs;
    this.#progressAt = this.#options.clock.monotonicMs();
  }

  /** @throws `reason` when patience has ended */
  async pause(reason?: unknown): Promise<void> {
    const { clock, patienceMs = Number.POSITIVE_INFINITY } = this.#options;
    if (clock.monotonicMs() - this.#progressAt >= patienceMs)
      throw reason ?? new UnreachableError("the stream's consumers keep breaking: see the NATS server's log");
    await this.#wait(this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, limits.journalRetryMsMax);
  }

  #wait(ms: number): Promise<void> {
    const { clock, signal, wire } = this.#options;
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        for (const stop of stops) stop();
        resolve();
      };
      const stops = [clock.after(ms, end), wire.onStatus(end)];
      if (signal !== undefined) stops.push(aborts.on(signal, end));
    });
  }
}
