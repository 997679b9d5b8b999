// An RxJS operator that repeats an attempt until success. The pause after each failure grows with the number of
// failures in a row. Requests that the SDK repeats one by one use it. Results (agent/result-outbox.ts) and submissions
// (client/submit-queue.ts) have queues of their own, with the same pauses.

import {
  defer,
  lastValueFrom,
  NEVER,
  type Observable,
  type ObservableInput,
  race,
  retry,
  take,
  takeUntil,
  timer,
} from "rxjs";
import { type BackOff, backOffMs } from "./back-off.ts";
import type { Clock, Random } from "./clock.ts";
import { schedulerOn } from "./clock-scheduler.ts";

export interface RetryPace {
  readonly clock: Pick<Clock, "after" | "monotonicMs">;
  readonly random: Pick<Random, "next">;
  readonly backOff: BackOff;
  /** Ends a pause at once: the connection is back, or a new leader speaks. */
  readonly hurry$?: Observable<unknown>;
  /** Ends everything without a value. */
  readonly stop$?: Observable<unknown>;
  /** Monotonic, ms. A failure is the last one if its pause would end later. Default: never. */
  readonly giveUpAtMs?: number;
}

/** An attempt throws this error to be repeated; any other error ends the repetition. */
export class TryAgain extends Error {
  readonly options: TryAgainOptions;

  constructor(options: TryAgainOptions = {}, { cause }: { readonly cause?: unknown } = {}) {
    super("try again", { cause });
    this.options = options;
  }
}

interface TryAgainOptions {
  /** Minimum pause, ms, unless `hurry$` ends the pause. Default 0. */
  readonly atLeastMs?: number;
  /** The attempt made progress: the count of failures restarts here. Default false. */
  readonly isProgress?: boolean;
  /** In place of the pace's. */
  readonly hurry$?: Observable<unknown>;
  /** The error to throw if this failure is the last one. Default: the cause, or this error. */
  readonly otherwise?: () => unknown;
}

/** Emits the values of the first successful attempt.
 *  @param attempt gets the number of failures in a row before it, from 0
 *  @throws the first error that is no `TryAgain`; after `giveUpAtMs` the error of the last `TryAgain` */
export function retryPaused<Value>(
  attempt: (failures: number) => ObservableInput<Value>,
  pace: RetryPace,
): Observable<Value> {
  return defer(() => {
    let failures = 0;
    const pauseFor = (error: unknown) => {
      if (!(error instanceof TryAgain)) throw error;
      const { atLeastMs = 0, isProgress = false, hurry$, otherwise } = error.options;
      failures = isProgress ? 1 : failures + 1;
      const pauseMs = Math.max(atLeastMs, pauseMsAfter(failures, pace));
      if (pace.clock.monotonicMs() + pauseMs >= (pace.giveUpAtMs ?? Number.POSITIVE_INFINITY))
        throw otherwise === undefined ? (error.cause ?? error) : otherwise();
      return pause(pauseMs, { ...pace, ...(hurry$ === undefined ? {} : { hurry$ }) });
    };
    return defer(() => attempt(failures)).pipe(retry({ delay: pauseFor }), takeUntil(pace.stop$ ?? NEVER));
  });
}

/** The same as a promise, which needs a value: not for a pace with `stop$`. */
export async function retried<Value>(
  attempt: (failures: number) => Promise<Value>,
  pace: Omit<RetryPace, "stop$">,
): Promise<Value> {
  return await lastValueFrom(retryPaused(attempt, pace));
}

/** Emits once, after the pause for the `failures`-th failure in a row, from 1, or earlier by `hurry$`. Emits nothing
 *  after `stop$`. */
export function pauseAfter(failures: number, pace: RetryPace): Observable<unknown> {
  return pause(pauseMsAfter(failures, pace), pace);
}

function pauseMsAfter(failures: number, { backOff, random }: RetryPace): number {
  return backOffMs(backOff, failures, random.next());
}

function pause(ms: number, { clock, hurry$ = NEVER, stop$ = NEVER }: RetryPace): Observable<unknown> {
  return race(timer(ms, schedulerOn(clock)), hurry$).pipe(take(1), takeUntil(stop$));
}
