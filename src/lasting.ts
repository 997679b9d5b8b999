// An RxJS operator for a condition that must hold without interruption for some time.

import { distinctUntilChanged, map, NEVER, type OperatorFunction, switchMap, timer } from "rxjs";
import type { Clock } from "./clock.ts";
import { schedulerOn } from "./clock-scheduler.ts";

/** Emits when the newest value has been `true` for `ms` without interruption: once per such period. */
export function lasting(
  ms: number,
  clock: Pick<Clock, "after" | "monotonicMs">,
): OperatorFunction<boolean, void> {
  const scheduler = schedulerOn(clock);
  return (holds$) =>
    holds$.pipe(
      distinctUntilChanged(),
      switchMap((holds) => (holds ? timer(ms, scheduler) : NEVER)),
      map(() => undefined),
    );
}
