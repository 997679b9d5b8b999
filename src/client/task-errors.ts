// Errors of a wait for the result of a task without a result.

import { WaggleError, type WaggleErrorCode } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import type { ResultDigest } from "../state/event.ts";

/** The task ended without a result. `outcome` has the details. */
export class TaskEndedError extends WaggleError {
  readonly taskId: string;
  readonly outcome: Outcome;

  constructor(code: WaggleErrorCode, message: string, outcome: Outcome) {
    super(code, message);
    this.taskId = outcome.task;
    this.outcome = outcome;
  }
}

/** The input was invalid, or no attempt was left; see `outcome.state`. `WAGGLE_TASK_FAILED`. */
export class TaskFailedError extends TaskEndedError {
  constructor(outcome: Outcome) {
    const attempts = outcome.attempts === 1 ? "1 attempt" : `${outcome.attempts} attempts`;
    const unknown = outcome.gone === true ? "the reason is no longer kept" : "no reason given";
    const why = outcome.error ?? outcome.reason ?? unknown;
    const how = outcome.state === "dead-lettered" ? "has no attempt left" : "failed";
    super("WAGGLE_TASK_FAILED", `Task ${outcome.task} ${how} after ${attempts}: ${why}`, outcome);
  }
}

/** The task was cancelled. `WAGGLE_TASK_CANCELLED`. */
export class TaskCancelledError extends TaskEndedError {
  constructor(outcome: Outcome) {
    super("WAGGLE_TASK_CANCELLED", `Task ${outcome.task} was cancelled`, outcome);
  }
}

/** The deadline passed before the task ended. `WAGGLE_TASK_EXPIRED`. */
export class TaskExpiredError extends TaskEndedError {
  constructor(outcome: Outcome) {
    super("WAGGLE_TASK_EXPIRED", `Task ${outcome.task} did not end before its deadline`, outcome);
  }
}

/**
 * The task completed, but its result cannot be had. Either the retention removed it, or its project journals results as
 * hash and nobody awaited the task when it ended: then `outcome.resultDigest` is present. `WAGGLE_GONE`.
 */
export class ResultGoneError extends TaskEndedError {
  constructor(outcome: Outcome) {
    const { task, resultDigest } = outcome;
    const why = resultDigest === undefined ? "its result is no longer kept" : hashOnlyText(resultDigest);
    super("WAGGLE_GONE", `Task ${task} completed, but ${why}`, outcome);
  }

  /** True if the outcome is of a completed task without its result. */
  static applies({ gone, result, resultDigest }: Outcome): boolean {
    return gone === true || (result === undefined && resultDigest !== undefined);
  }
}

/** Why the journal does not keep a result, with the result's length and hash. */
export function hashOnlyText({ sha256, bytes }: ResultDigest): string {
  return `its result was not kept: its project journals results as hash. The result had ${bytes} bytes, sha256 ${sha256}`;
}

/** The wait timed out, and the task goes on. Wait again with `swarm.task(id)`. `WAGGLE_WAIT_TIMED_OUT`. */
export class WaitTimedOutError extends WaggleError {
  readonly taskId: string;

  constructor(taskId: string, timeoutMs: number) {
    super("WAGGLE_WAIT_TIMED_OUT", `Task ${taskId} did not end within ${timeoutMs} ms; it continues`);
    this.taskId = taskId;
  }
}
