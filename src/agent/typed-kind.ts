// A kind of tasks with schemas of its input and output, shared by submitters of its tasks and agents that run them.
// Payload and result travel as JSON. Both sides check what the other side will read: the value after a round trip
// through JSON. So what passes at the submitter passes at the agent, and a Date in an object is refused where it is
// given.

import { z } from "zod";
import { limits } from "../limits.ts";
import { kindSchema } from "../protocol/schemas.ts";
import { argument, having, readerOf } from "./options.ts";
import type { InputOf, OutputOf, StandardIssue, StandardSchema } from "./standard-schema.ts";
import { wordsOf } from "./words.ts";

// biome-ignore lint/suspicious/noExplicitAny: a constraint that any schema meets; inferred types are the schema's own
type AnySchema = StandardSchema<any, any>;

/** A kind as `defineKind` makes it. Give it for the name of a kind: `swarm.submit({ kind: count, payload })`,
 *  `swarm.agent({ kind: count, handler })`. */
export interface TypedKind<Input extends AnySchema = AnySchema, Output extends AnySchema = AnySchema> {
  readonly name: string;
  readonly input: Input;
  readonly output: Output;
}

/** What a schema makes of a value. */
export type InferredOutput<Schema extends AnySchema> = OutputOf<Schema>;
/** What a submitter gives as payload. */
export type PayloadOf<Kind extends TypedKind> = InputOf<Kind["input"]>;
/** What a handler is given as `task.input`. */
export type TaskInputOf<Kind extends TypedKind> = OutputOf<Kind["input"]>;
/** What a handler returns. */
export type HandlerResultOf<Kind extends TypedKind> = InputOf<Kind["output"]>;
/** What a submitter is given as `result.value`. */
export type ResultValueOf<Kind extends TypedKind> = OutputOf<Kind["output"]>;

export interface KindSchemas<Input extends AnySchema, Output extends AnySchema> {
  /** Of the payload: any Standard Schema, as zod, valibot and arktype make them. May be asynchronous. */
  readonly input: Input;
  /** Of the result. */
  readonly output: Output;
}

const schema = z.custom<AnySchema>(isSchema, {
  error: 'must be a Standard Schema, as z.object({ text: z.string() }) of zod; it has no "~standard"',
});

function isSchema(value: unknown): value is AnySchema {
  // arktype's schemas are functions
  const isHolder = (typeof value === "object" && value !== null) || typeof value === "function";
  const standard: unknown = isHolder ? Reflect.get(value, "~standard") : undefined;
  return having<AnySchema["~standard"]>("a schema", "validate").safeParse(standard).success;
}

const readSchemas = readerOf<KindSchemas<AnySchema, AnySchema>>({
  each: { input: schema, output: schema },
  required: ["input", "output"],
  otherwise: { payload: "input", result: "output" },
  example: "{ input: z.object({ text: z.string() }), output: z.object({ words: z.number() }) }",
});

/** A kind whose payloads and results are checked and typed. The input is checked before a task is submitted, and again
 *  by the agent before it runs; the output by the agent, and again by whoever waits for the result. The types come from
 *  the schemas.
 *  @param name 1–128 printable characters without spaces
 *  @throws InvalidMessageError naming what is wrong */
export function defineKind<Input extends AnySchema, Output extends AnySchema>(
  name: string,
  schemas: KindSchemas<Input, Output>,
): TypedKind<Input, Output> {
  const { input, output } = readSchemas("defineKind", schemas) as KindSchemas<Input, Output>;
  return Object.freeze({ name: argument(["defineKind", "name"], name, kindSchema) as string, input, output });
}

/** Whether it is what `defineKind` made, or has the same form. */
export function isTypedKind(value: unknown): value is TypedKind {
  if (typeof value !== "object" || value === null) return false;
  const { name, input, output } = value as Partial<TypedKind>;
  return typeof name === "string" && isSchema(input) && isSchema(output);
}

export type CheckedJson<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string; readonly field: string };

/** The value that a schema makes of a JSON text, or the path and words of each problem. Rejects with what the schema
 *  itself throws. @param what begins each path: `payload`, `result` */
export async function checkedJson<Schema extends AnySchema>(
  json: string,
  { schema, what }: { readonly schema: Schema; readonly what: string },
): Promise<CheckedJson<OutputOf<Schema>>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    return { ok: false, message: `${what}: is not JSON: ${wordsOf(cause)}`, field: what };
  }
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { ok: true, value: result.value as OutputOf<Schema> };
  const [first = { message: "is refused by its schema" }, ...others] = result.issues;
  const problems = [first, ...others.slice(0, limits.issuesShownMax - 1)];
  const more = 1 + others.length - problems.length;
  const message = problems.map((issue) => `${pathOf(what, issue)}: ${issue.message}`).join("; ");
  return {
    ok: false,
    message: more > 0 ? `${message}; and ${more} more` : message,
    field: pathOf(what, first),
  };
}

function pathOf(what: string, { path = [] }: StandardIssue): string {
  let text = what;
  for (const part of path) {
    const key = typeof part === "object" ? part.key : part;
    text += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }
  return text;
}
