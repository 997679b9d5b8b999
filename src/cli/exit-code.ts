// Exit codes, for scripts. `waggle --help` prints the table. Not here: error messages (errors.ts), their output
// (report-error.ts).

import { InvalidArgumentError } from "commander";
import { unreachable } from "../assert.ts";
import { WaggleError, type WaggleErrorCode } from "../errors.ts";

export const exitCodes = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  unreachable: 3,
  taskFailed: 4,
  rejected: 5,
  waitTimedOut: 6,
  journalDamaged: 7,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeMeanings: readonly (readonly [ExitCode, string])[] = [
  [exitCodes.ok, "ok"],
  [exitCodes.unexpected, "unexpected"],
  [exitCodes.usage, "usage or configuration"],
  [exitCodes.unreachable, "cannot reach NATS or a leader"],
  [exitCodes.taskFailed, "a task failed"],
  [
    exitCodes.rejected,
    "rejected: backpressure, no capable agent, unknown, conflict, journal in use, no standby, id taken by a later agent, not permitted, credentials revoked or expired",
  ],
  [exitCodes.waitTimedOut, "the wait timed out; the task continues"],
  [exitCodes.journalDamaged, "the journal is damaged"],
  [exitCodes.interrupted, "interrupted"],
];

/** Ctrl-C, or SIGTERM, ended a wait: nothing went wrong, and nothing was undone. */
export class InterruptedError extends Error {
  constructor() {
    super("interrupted");
    this.name = "InterruptedError";
  }
}

/** Worst first: unexpected, damaged, unreachable, usage, rejected, failed, timed out. */
const worstFirst: readonly ExitCode[] = [
  exitCodes.unexpected,
  exitCodes.journalDamaged,
  exitCodes.unreachable,
  exitCodes.usage,
  exitCodes.rejected,
  exitCodes.taskFailed,
  exitCodes.waitTimedOut,
];

/** The exit code of a verb for many tasks: the worst of their codes, 0 if none failed. */
export function worstOf(codes: ReadonlySet<ExitCode>): ExitCode {
  return worstFirst.find((code) => codes.has(code)) ?? exitCodes.ok;
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  if (error instanceof InvalidArgumentError) return exitCodes.usage;
  return error instanceof WaggleError ? exitCodeOfWaggle(error.code) : exitCodes.unexpected;
}

function exitCodeOfWaggle(code: WaggleErrorCode): ExitCode {
  switch (code) {
    case "WAGGLE_USAGE":
    case "WAGGLE_AMBIGUOUS_TASK":
    case "WAGGLE_INVALID_CONFIG":
    case "WAGGLE_INVALID_MESSAGE":
    case "WAGGLE_INVALID_VALUE":
    case "WAGGLE_JOURNAL_SETTINGS":
    case "WAGGLE_MISSING_PACKAGE":
      return exitCodes.usage;
    case "WAGGLE_UNREACHABLE":
    case "WAGGLE_NO_LEADER":
    case "WAGGLE_OUTCOME_UNKNOWN":
    case "WAGGLE_BROKER":
      return exitCodes.unreachable;
    case "WAGGLE_TASK_FAILED":
    case "WAGGLE_TASK_CANCELLED":
    case "WAGGLE_TASK_EXPIRED":
      return exitCodes.taskFailed;
    case "WAGGLE_BACKPRESSURE":
    case "WAGGLE_NO_CAPABLE_AGENT":
    case "WAGGLE_NO_AGENTS_AVAILABLE":
    case "WAGGLE_OVER_BUDGET":
    case "WAGGLE_BUDGET_EXCEEDED":
    case "WAGGLE_UNKNOWN_TASK":
    case "WAGGLE_UNKNOWN_AGENT":
    case "WAGGLE_UNKNOWN_PROJECT":
    case "WAGGLE_CONFLICT":
    case "WAGGLE_NO_STANDBY":
    case "WAGGLE_UNKNOWN_RESOURCE":
    case "WAGGLE_ABOVE_CAPACITY":
    case "WAGGLE_ACQUIRE_ORDER":
    case "WAGGLE_ON_HOLD":
    case "WAGGLE_UNKNOWN_HANDLE":
    case "WAGGLE_HANDLE_ENDED":
    case "WAGGLE_SLOT_LOST":
    case "WAGGLE_JOURNAL_FULL":
    case "WAGGLE_JOURNAL_LOCKED":
    case "WAGGLE_FENCED":
    case "WAGGLE_GONE":
    case "WAGGLE_AUDIT_TRIMMED":
    case "WAGGLE_STALE_TOKEN":
    case "WAGGLE_FORBIDDEN":
    case "WAGGLE_UNAUTHORIZED":
      return exitCodes.rejected;
    case "WAGGLE_WAIT_TIMED_OUT":
    case "WAGGLE_ACQUIRE_TIMED_OUT":
      return exitCodes.waitTimedOut;
    case "WAGGLE_JOURNAL_DAMAGED":
      return exitCodes.journalDamaged;
    case "WAGGLE_INVARIANT":
      return exitCodes.unexpected;
    default:
      return unreachable(code);
  }
}
