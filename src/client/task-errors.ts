// How a task that did not succeed looks to whoever waited for its result.

import { WaggleError, type WaggleErrorCode } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";

/** The task ended, but not with a result. `outcome` says how. */
export class TaskEndedError extends WaggleError {
  readonly taskId: string;
  readonly outcome: Outcome;

  constructor(code: WaggleErrorCode, message: string, outcome: Outcome) {
    super(code, message);
    this.taskId = outcome.task;
    this.outcome = outcome;
  }
}

/** Its input was invalid, or no attempt was left (`outcome.state` tells which). `WAGGLE_TASK_FAILED`. */
export class TaskFailedError extends TaskEndedError {
  constructor(outcome: Outcome) {
    const attempts = outcome.attempts === 1 ? "1 attempt" : `${outcome.attempts} attempts`;
    const untold = outcome.gone === true ? "why is no longer kept" : "no reason given";
    const why = outcome.error ?? outcome.reason ?? untold;
    const how = outcome.state === "dead-lettered" ? "has no attempt left" : "failed";
    super("WAGGLE_TASK_FAILED", `Task ${outcome.task} ${how} after ${attempts}: ${why}`, outcome);
  }
}

/** Somebody cancelled it. `WAGGLE_TASK_CANCELLED`. */
export class TaskCancelledError extends TaskEndedError {
  constructor(outcome: Outcome) {
    super("WAGGLE_TASK_CANCELLED", `Task ${outcome.task} was cancelled`, outcome);
  }
}

/** Its deadline passed before it ended. `WAGGLE_TASK_EXPIRED`. */
export class TaskExpiredError extends TaskEndedError {
  constructor(outcome: Outcome) {
    super("WAGGLE_TASK_EXPIRED", `Task ${outcome.task} did not end before its deadline`, outcome);
  }
}

/** It completed, but its result is no longer held: the horizon of section 6 passed. `WAGGLE_GONE`. */
export class ResultGoneError extends TaskEndedError {
  constructor(outcome: Outcome) {
    super("WAGGLE_GONE", `Task ${outcome.task} completed, but its result is no longer kept`, outcome);
  }
}

/** Only the wait is over: the task goes on. Ask again with `swarm.task(id)`. `WAGGLE_WAIT_TIMED_OUT`. */
export class WaitTimedOutError extends WaggleError {
  readonly taskId: string;

  constructor(taskId: string, timeoutMs: number) {
    super("WAGGLE_WAIT_TIMED_OUT", `Task ${taskId} did not end within ${timeoutMs} ms; it goes on`);
    this.taskId = taskId;
  }
}
