// When to repeat a question to a stream without an answer: soon, then later, and at once after a change of the
// connection; and when to give up.

import { firstValueFrom, NEVER, Observable } from "rxjs";
import { Aborts } from "../../abort.ts";
import type { Clock, Random } from "../../clock.ts";
import { UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { pauseAfter } from "../../retry-paused.ts";
import type { StreamWire } from "./wire.ts";

export interface RetryOptions {
  readonly wire: Pick<StreamWire, "onStatus">;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends any pause. */
  readonly signal?: AbortSignal | undefined;
  /** After no progress for so many ms, a pause throws. Default: never. */
  readonly patienceMs?: number | undefined;
}

const backOff = { pauseMs: limits.journalRetryMs, pauseMsMax: limits.journalRetryMsMax };
/** Many readers may end with one signal. */
const aborts = new Aborts();

export class Retry {
  readonly #options: RetryOptions;
  #failures = 0;
  #progressAt: number;

  constructor(options: RetryOptions) {
    this.#options = options;
    this.#progressAt = options.clock.monotonicMs();
  }

  /** Call at each progress. */
  reset(): void {
    this.#failures = 0;
    this.#progressAt = this.#options.clock.monotonicMs();
  }

  /** @throws `reason` when patience has ended */
  async pause(reason?: unknown): Promise<void> {
    const { wire, clock, random, signal, patienceMs = Number.POSITIVE_INFINITY } = this.#options;
    if (clock.monotonicMs() - this.#progressAt >= patienceMs)
      throw reason ?? new UnreachableError("the stream's consumers keep breaking: see the NATS server's log");
    this.#failures += 1;
    if (signal?.aborted === true) return;
    const hurry$ = new Observable<void>((subscriber) => wire.onStatus(() => subscriber.next()));
    const stop$ =
      signal === undefined
        ? NEVER
        : new Observable<void>((subscriber) => aborts.on(signal, () => subscriber.next()));
    const pause$ = pauseAfter(this.#failures, { clock, random, backOff, hurry$, stop$ });
    await firstValueFrom(pause$, { defaultValue: undefined });
  }
}
