// The last word on a failure: one line `error CODE: what to do`, or with --json the same as a record, on
// stderr. The stack and the causes only with --verbose.

import type { Command } from "commander";
import { DamagedExportError } from "../audit/export.ts";
import {
  BackpressureError,
  BudgetExceededError,
  type ExceededBudget,
  messageOf,
  WaggleError,
} from "../errors.ts";
import { LossError } from "../protocol/loss-error.ts";
import { type ExitCode, exitCodeOf, InterruptedError } from "./exit-code.ts";
import { messageAsTyped } from "./message-as-typed.ts";
import { type Output, OutputError, printable } from "./output.ts";

/** An error in the format of --json. */
export interface ErrorRecord {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly field?: string;
    readonly retryAfterMs?: number;
    readonly budget?: ExceededBudget;
    readonly exitCode: ExitCode;
  };
}

export function errorRecord(error: unknown, command?: Command): ErrorRecord {
  const { code, message } = wordsOf(error, command);
  const field = error instanceof WaggleError ? error.field : undefined;
  return {
    error: {
      code,
      message,
      ...(field === undefined ? {} : { field }),
      ...(error instanceof BackpressureError ? { retryAfterMs: error.retryAfterMs } : {}),
      ...(error instanceof BudgetExceededError
        ? { retryAfterMs: error.retryAfterMs, budget: error.budget }
        : {}),
      exitCode: exitCodeOf(error),
    },
  };
}

/** Prints the error and returns the exit code.
 *  @param options.command the command line, if known: fields are named as their flags */
export function reportError(
  error: unknown,
  output: Output,
  options: { readonly verbose: boolean; readonly command?: Command },
): ExitCode {
  const record = errorRecord(error, options.command);
  const message = output.asStarted(record.error.message);
  if (output.json) output.note(JSON.stringify({ error: { ...record.error, message } }));
  else output.note(errorLine(error, record.error, output));
  if (options.verbose) for (const stack of stacksOf(error)) output.note(stack);
  return record.error.exitCode;
}

function errorLine(error: unknown, { code, message }: ErrorRecord["error"], { noteColors }: Output): string {
  if (error instanceof InterruptedError) return noteColors.yellow("interrupted");
  return `${noteColors.red(`error ${code}:`)} ${message}`;
}

function wordsOf(error: unknown, command: Command | undefined): { code: string; message: string } {
  if (error instanceof WaggleError) {
    const message = command === undefined ? error.message : messageAsTyped(error, command);
    return { code: error.code, message: withRemedy(error, oneLine(message)) };
  }
  if (error instanceof InterruptedError) return { code: "INTERRUPTED", message: "interrupted" };
  if (error instanceof OutputError) return { code: "OUTPUT", message: oneLine(error.message) };
  const message = messageOf(error);
  return {
    code: "UNEXPECTED",
    message: `${oneLine(message)} (run the command again with --verbose for the stack)`,
  };
}

/** Adds the remedy for a damaged journal, unless the message has a remedy. */
function withRemedy(error: WaggleError, message: string): string {
  const hasRemedy =
    error instanceof LossError ||
    error instanceof DamagedExportError ||
    message.includes("`waggle journal recover`");
  if (error.code !== "WAGGLE_JOURNAL_DAMAGED" || hasRemedy) return message;
  return `${message}; restore the storage from a backup, or run \`waggle journal recover\` to see what can be read`;
}

function oneLine(text: string): string {
  return printable(text.trim().replace(/\s*\n\s*/g, " · "));
}

function stacksOf(error: unknown): string[] {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < 10; at = at.cause) {
    stacks.push(`${stacks.length === 0 ? "" : "caused by "}${at.stack ?? at.message}`);
  }
  return stacks;
}
