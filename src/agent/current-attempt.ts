// The attempt whose handler is running the present code, found through asynchronous calls. For code between a handler
// and its own library calls, such as the wrapper of a model's client, that gets no context as an argument.

import { AsyncLocalStorage } from "node:async_hooks";
import type { SwarmId } from "../ids.ts";
import type { HandlerContext } from "./handler.ts";
import type { CallRecord, HiddenFailures } from "./hidden-failures.ts";

/** A handler's context, and whether the handler still runs. */
export interface RunningAttempt extends HandlerContext {
  readonly hasEnded: boolean;
  /** The swarm of the agent that runs the handler. */
  readonly reached: ReachedSwarm;
  readonly hiddenFailures: HiddenFailures;
}

/** A swarm, as a connection reaches it. A name alone does not tell swarms of different servers apart. */
export interface ReachedSwarm {
  readonly swarm: SwarmId;
  /** As `Transport.servers`. */
  readonly servers: readonly string[] | undefined;
}

const running = new AsyncLocalStorage<RunningAttempt>();

/** The context of the handler that called this code, directly or through asynchronous calls. Undefined outside of
 *  handlers, and in calls that outlive their handler. */
export function currentAttempt(): HandlerContext | undefined {
  const attempt = running.getStore();
  return attempt?.hasEnded === false ? attempt : undefined;
}

/** As `currentAttempt`, for attempts of one swarm. Connections to servers that they do not have in common are taken for
 *  connections to different swarms. */
export function currentAttemptOf({ swarm, servers }: ReachedSwarm): HandlerContext | undefined {
  const attempt = running.getStore();
  if (attempt === undefined || attempt.hasEnded || attempt.reached.swarm !== swarm) return undefined;
  const { servers: others } = attempt.reached;
  const isShared =
    servers === undefined || others === undefined || servers.some((server) => others.includes(server));
  return isShared ? attempt : undefined;
}

/** A call of a model begins in an attempt. Undefined outside of handlers. */
export function callRecordOf(attempt: HandlerContext | undefined): CallRecord | undefined {
  return (attempt as Partial<RunningAttempt> | undefined)?.hiddenFailures?.begin();
}

/** Runs code as the code of an attempt. */
export function runAs<Result>(attempt: RunningAttempt, run: () => Result): Result {
  return running.run(attempt, run);
}
