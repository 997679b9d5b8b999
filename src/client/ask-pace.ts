// The pace at which a client repeats an unanswered request.

import { defer, fromEvent, NEVER, type Observable, of } from "rxjs";
import { limits } from "../limits.ts";
import type { RetryPace } from "../retry-paused.ts";

const backOff = { pauseMs: limits.askBackoffMs, pauseMsMax: limits.askBackoffMsMax };

export function askPace({ clock, random }: Pick<RetryPace, "clock" | "random">): RetryPace {
  return { clock, random, backOff };
}

/** Emits when `signal` aborts, or at once if already aborted. */
export function abortOf(signal: AbortSignal | undefined): Observable<unknown> {
  if (signal === undefined) return NEVER;
  return defer(() => (signal.aborted ? of(undefined) : fromEvent(signal, "abort")));
}
