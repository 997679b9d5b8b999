// Output and exit code of errors.

import { describe, expect, it } from "vitest";
import { exitCodeOf, InterruptedError } from "../../src/cli/exit-code.ts";
import { Output } from "../../src/cli/output.ts";
import { reportError } from "../../src/cli/report-error.ts";
import { WaitTimedOutError } from "../../src/client/task-errors.ts";
import {
  BackpressureError,
  InvalidConfigError,
  InvalidMessageError,
  InvariantError,
  JournalDamagedError,
  NoLeaderError,
  OutcomeUnknownError,
  UnreachableError,
  WaggleError,
} from "../../src/errors.ts";
import { LossError } from "../../src/protocol/loss-error.ts";
import { aShell } from "./shell.ts";

describe("exit codes", () => {
  it.each([
    [new Error("a bug"), 1],
    [new InvariantError("x"), 1],
    [new WaggleError("WAGGLE_USAGE", "x"), 2],
    [new InvalidConfigError("x"), 2],
    [new InvalidMessageError("x"), 2],
    [new UnreachableError("x"), 3],
    [new NoLeaderError("x"), 3],
    [new OutcomeUnknownError("x"), 3],
    [new WaggleError("WAGGLE_BROKER", "x"), 3],
    [new WaggleError("WAGGLE_TASK_FAILED", "x"), 4],
    [new WaggleError("WAGGLE_TASK_EXPIRED", "x"), 4],
    [new BackpressureError("x", 100), 5],
    [new WaggleError("WAGGLE_NO_CAPABLE_AGENT", "x"), 5],
    [new WaggleError("WAGGLE_JOURNAL_LOCKED", "x"), 5],
    [new WaitTimedOutError("t1", 100), 6],
    [new JournalDamagedError("x"), 7],
    [new InterruptedError(), 130],
  ])("%s", (error, code) => expect(exitCodeOf(error)).toBe(code));
});

function reported(error: unknown, options: { json?: boolean; verbose?: boolean } = {}) {
  const shell = aShell();
  const output = new Output(shell, { json: options.json === true });
  const code = reportError(error, output, { verbose: options.verbose === true });
  return { code, stdout: shell.stdout.text, stderr: shell.stderr.text };
}

describe("a failure", () => {
  it("is one line, for any message", () => {
    const error = new UnreachableError("first\n  second\u001b[2J\n");
    expect(reported(error)).toEqual({
      code: 3,
      stdout: "",
      stderr: "error WAGGLE_UNREACHABLE: first · second\\x1b[2J\n",
    });
  });

  it("is a record with --json, with all that a program can use", () => {
    expect(JSON.parse(reported(new BackpressureError("full", 250), { json: true }).stderr)).toEqual({
      error: { code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 250, exitCode: 5 },
    });
    const invalid = new InvalidMessageError("kind: must be text", { field: "kind" });
    expect(JSON.parse(reported(invalid, { json: true }).stderr)).toMatchObject({ error: { field: "kind" } });
  });

  it("of a damaged journal gets a remedy, unless the message has one", () => {
    const advice =
      "; restore the storage from a backup, or run `waggle journal recover` to see what can be read\n";
    expect(reported(new JournalDamagedError("x")).stderr).toBe(`error WAGGLE_JOURNAL_DAMAGED: x${advice}`);
    const loss = new LossError({ term: 1, idx: 9 }, { term: 2, idx: 7 });
    expect(reported(loss).stderr).toMatch(/: submit them again with their ids\.\n$/);
  });

  it("an unexpected error says how to see more", () => {
    expect(reported(new TypeError("x is not a function")).stderr).toBe(
      "error UNEXPECTED: x is not a function (run the command again with --verbose for the stack)\n",
    );
  });

  it("shows its causes with --verbose", () => {
    const error = new UnreachableError("x", { cause: new Error("ECONNREFUSED") });
    const { stderr } = reported(error, { verbose: true });
    expect(stderr).toMatch(/\nUnreachableError: x\n +at /);
    expect(stderr).toMatch(/\ncaused by Error: ECONNREFUSED\n +at /);
  });
});
