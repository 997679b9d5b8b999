// The log of a verb as JSON lines: an expected error is a sentence with its code, and a bug has its stack.

import { expect, test } from "vitest";
import { createLogger } from "../../src/cli/logger.ts";
import { Output } from "../../src/cli/output.ts";
import {
  InvalidConfigError,
  InvariantError,
  JournalDamagedError,
  UnreachableError,
} from "../../src/errors.ts";
import { aShell } from "./shell.ts";

async function loggedErr(error: unknown): Promise<unknown> {
  const shell = aShell();
  const logger = await createLogger(new Output(shell, { json: true }), { level: "info" });
  logger.error({ err: error }, "the journal cannot be read");
  return JSON.parse(shell.stderr.text).err;
}

test("an expected error is logged with its code and its cause, without a stack", async () => {
  const cause = new UnreachableError("no server answers");
  expect(await loggedErr(new JournalDamagedError("record 7 is missing", { cause }))).toEqual({
    type: "JournalDamagedError",
    code: "WAGGLE_JOURNAL_DAMAGED",
    message: "record 7 is missing",
    cause: "no server answers",
  });
});

test("an error of a setting is logged with the setting's name", async () => {
  const error = new InvalidConfigError("--listen needs host:port", { field: "--listen" });
  expect(await loggedErr(error)).toMatchObject({ code: "WAGGLE_INVALID_CONFIG", field: "--listen" });
});

test.each([new InvariantError("a leader has a segment"), new TypeError("x is not a function")])(
  "a bug is logged with its stack: %s",
  async (bug) => {
    expect(await loggedErr(bug)).toMatchObject({ message: bug.message, stack: bug.stack });
  },
);
