// An RxJS operator that repeats an attempt until it succeeds, with a pause after each failure that grows with the
// failures in a row. Its pauses end early by `hurry$`, and everything ends by `stop$` or by unsubscribing.

import {
  defer,
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
}

/** An attempt throws it to be repeated; any other error ends the repetition. */
export class TryAgain extends Error {}

/** Emits what the first successful attempt emits.
 *  @param attempt gets the number of failures in a row before it, from 0
 *  @throws the first error of an attempt that is no `TryAgain` */
export function retryPaused<Value>(
  attempt: (failures: number) => ObservableInput<Value>,
  pace: RetryPace,
): Observable<Value> {
  return defer(() => {
    let failures = 0;
    return defer(() => attempt(failures)).pipe(
      retry({
        delay: (error: unknown) => {
          if (!(error instanceof TryAgain)) throw error;
          failures += 1;
          return pauseAfter(failures, pace);
        },
      }),
      takeUntil(pace.stop$ ?? NEVER),
    );
  });
}

/** Emits once, after the pause for the `failures`-th failure in a row, from 1, or earlier by `hurry$`. Emits nothing
 *  after `stop$`. */
export function pauseAfter(
  failures: number,
  { clock, random, backOff, hurry$ = NEVER, stop$ = NEVER }: RetryPace,
): Observable<unknown> {
  const pauseMs = backOffMs(backOff, failures, random.next());
  return race(timer(pauseMs, schedulerOn(clock)), hurry$).pipe(take(1), takeUntil(stop$));
}
