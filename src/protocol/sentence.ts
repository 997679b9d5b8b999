// The error about an invalid value: the expected and the actual value. Not here: the name of the field (codec.ts),
// and a schema's own sentences, which take precedence.

import type { z } from "zod";
import { headOf } from "../cut-text.ts";

/** Undefined where zod's own words do. */
export function sentenceOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      return `must be ${typeNames[issue.expected] ?? issue.expected}, not ${shown(issue.input)}`;
    case "too_small":
      return boundText(issue, `at least ${issue.minimum}`);
    case "too_big":
      return boundText(issue, `at most ${issue.maximum}`);
    case "invalid_value": {
      const known = issue.values.map(String).join(", ");
      return `must be ${issue.values.length === 1 ? "" : "one of "}${known}, not ${shown(issue.input)}`;
    }
    default:
      return undefined;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  number: "a number",
  int: "a whole number",
  string: "text",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

function boundText({ input }: { readonly input?: unknown }, bound: string): string {
  if (typeof input === "string") return `must have ${bound} characters and has ${input.length}`;
  if (Array.isArray(input)) return `must be a list of ${bound}, not of ${input.length}`;
  return `must be ${bound}, not ${shown(input)}`;
}

/** Shortened, because input may be of any length. */
export function shown(input: unknown): string {
  if (typeof input === "string") return input === "" ? "empty text" : `'${headOf(input, 40)}'`;
  if (Array.isArray(input)) return `a list of ${input.length}`;
  if (typeof input === "function") return "a function";
  if (typeof input === "bigint") return `${input}n`;
  if (input instanceof Date) return Number.isNaN(input.getTime()) ? "an invalid Date" : input.toISOString();
  return typeof input === "object" && input !== null ? "an object" : String(input);
}
