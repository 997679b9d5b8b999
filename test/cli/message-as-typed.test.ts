// Errors use the words of the command line: each field of settings, submits and joins has its flag, except fields
// that users never type.

import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { messageAsTyped } from "../../src/cli/message-as-typed.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { InvalidValueError, WaggleError } from "../../src/errors.ts";
import { joinRequestSchema, taskInputSchema } from "../../src/protocol/schemas.ts";
import {
  kindPatchSchema,
  policyPatchSchema,
  projectPatchSchema,
  ratePatchSchema,
  resourcePatchSchema,
} from "../../src/protocol/settings-schemas.ts";
import { aShell } from "./shell.ts";

const root = await buildProgram({ shell: aShell(), exitCode: 0, asStarted: (text) => text });

function commandOf(...words: readonly string[]): Command {
  let command = root;
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) throw new Error(`there is no ${words.join(" ")}`);
    command = next;
  }
  return command;
}

const refusal = (field: string, message: string) => new InvalidValueError(message, { field });

const set = (verb: string, { shape }: { readonly shape: object }) => ({
  verb: `${verb} set`,
  fields: Object.keys(shape).flatMap((field) =>
    field === "budget" ? ["budget.tokens", "budget.windowMs", "budget.mode"] : [field],
  ),
});

/** Said by the program itself, by its environment, or by the sources of a task. */
const untyped = new Set([
  "v",
  "incarnation",
  "after",
  "held",
  "seen",
  "encoding",
  "traceparent",
  "tracestate",
]);
const typed = ({ shape }: { readonly shape: object }) =>
  Object.keys(shape).filter((field) => !untyped.has(field));

const verbs: { readonly verb: string; readonly fields: readonly string[] }[] = [
  set("policy", policyPatchSchema),
  set("project", projectPatchSchema),
  set("kind", kindPatchSchema),
  set("resource", resourcePatchSchema),
  set("rate", ratePatchSchema),
  { verb: "submit", fields: typed(taskInputSchema) },
  { verb: "agent", fields: typed(joinRequestSchema) },
];

describe.each(verbs)("waggle $verb", ({ verb, fields }) => {
  it.each(fields)("names the flag of %s", (field) => {
    const text = messageAsTyped(refusal(field, `${field}: cannot be`), commandOf(...verb.split(" ")));
    expect(text).toMatch(/^--[a-z-]+: cannot be$/);
  });
});

describe("a message that does not begin with the field", () => {
  const error = refusal("alpha", "α is too much");

  it("is preceded by the flag, where that was typed", () => {
    const command = commandOf("policy", "set");
    expect(messageAsTyped(error, command)).toBe("α is too much");
    command.setOptionValueWithSource("alpha", 0.8, "cli");
    expect(messageAsTyped(error, command)).toBe("--alpha: α is too much");
  });

  it("stays unchanged for a line of a file, or if it names the flag", () => {
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

it("a field without a flag keeps its name", () => {
  const text = messageAsTyped(refusal("payload.depth", "payload.depth: too deep"), commandOf("submit"));
  expect(text).toBe("payload.depth: too deep");
});
