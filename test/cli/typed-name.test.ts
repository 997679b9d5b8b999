// A refusal is told in the words of the command line: each field that a verb sends has a flag that stands for it.

import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { messageAsTyped } from "../../src/cli/typed-name.ts";
import { InvalidValueError, WaggleError } from "../../src/errors.ts";
import {
  kindPatchSchema,
  policyPatchSchema,
  projectPatchSchema,
  ratePatchSchema,
  resourcePatchSchema,
} from "../../src/protocol/settings-schemas.ts";
import { aShell } from "./shell.ts";

function commandOf(...words: readonly string[]): Command {
  let command = buildProgram({ shell: aShell(), exitCode: 0 });
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) throw new Error(`there is no ${words.join(" ")}`);
    command = next;
  }
  return command;
}

const refusal = (field: string, message: string) => new InvalidValueError(message, { field });

const patches = {
  policy: policyPatchSchema,
  project: projectPatchSchema,
  kind: kindPatchSchema,
  resource: resourcePatchSchema,
  rate: ratePatchSchema,
};

describe.each(Object.entries(patches))("waggle %s set", (verb, schema) => {
  const fields = Object.keys(schema.shape).flatMap((field) =>
    field === "budget" ? ["budget.tokens", "budget.windowMs", "budget.mode"] : [field],
  );
  it.each(fields)("names the flag of %s", (field) => {
    const told = messageAsTyped(refusal(field, `${field}: cannot be`), commandOf(verb, "set"));
    expect(told).toMatch(/^--[a-z-]+: cannot be$/);
  });
});

describe("a message that does not begin with its field", () => {
  const error = refusal("alpha", "α is too much");

  it("is preceded by the flag, where that was typed", () => {
    const command = commandOf("policy", "set");
    expect(messageAsTyped(error, command)).toBe("α is too much");
    command.setOptionValueWithSource("alpha", 0.8, "cli");
    expect(messageAsTyped(error, command)).toBe("--alpha: α is too much");
  });

  it("stays as it is where it is of a line of a file, or names the flag itself", () => {
    const command = commandOf("submit");
    command.setOptionValueWithSource("weight", 2, "cli");
    for (const message of ["line 3: weight: is no number", "leave out --weight"])
      expect(messageAsTyped(refusal("weight", message), command)).toBe(message);
  });
});

it("what could be and is refused all the same says so in its own words", () => {
  const command = commandOf("submit");
  command.setOptionValueWithSource("id", "t1", "cli");
  const conflict = new WaggleError("WAGGLE_CONFLICT", "task t1 was submitted before", { field: "id" });
  expect(messageAsTyped(conflict, command)).toBe("task t1 was submitted before");
});

it("what no flag stands for is named as it is", () => {
  const told = messageAsTyped(refusal("payload.depth", "payload.depth: too deep"), commandOf("submit"));
  expect(told).toBe("payload.depth: too deep");
});
