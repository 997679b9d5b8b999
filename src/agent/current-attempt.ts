// The attempt whose handler is running the present code, found through asynchronous calls. For code between a handler
// and its own library calls, such as the wrapper of a model's client, that gets no context as an argument.

import { AsyncLocalStorage } from "node:async_hooks";
import type { HandlerContext } from "./handler.ts";

/** A handler's context, and whether the handler still runs. */
export interface RunningAttempt extends HandlerContext {
  readonly hasEnded: boolean;
}

const running = new AsyncLocalStorage<RunningAttempt>();

/** The context of the handler that called this code, directly or through asynchronous calls. Undefined outside of
 *  handlers, and in calls that outlive their handler. */
export function currentAttempt(): HandlerContext | undefined {
  const attempt = running.getStore();
  return attempt?.hasEnded === false ? attempt : undefined;
}

/** Runs code as the code of an attempt. */
export function runAs<Result>(attempt: RunningAttempt, run: () => Result): Result {
  return running.run(attempt, run);
}
