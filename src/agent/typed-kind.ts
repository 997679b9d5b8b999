// A kind of tasks with schemas for input and output, shared by submitters and agents. Payload and result travel
// as JSON. Both sides check the value after a round trip through JSON, which is the value that the other side
// reads. So a payload accepted at the submitter is accepted at the agent, and a Date inside an object is
// refused at its source.

import * as z from "zod";
import { limits } from "../limits.ts";
import { kindSchema } from "../protocol/schemas.ts";
import { argument, having, readerOf } from "./options.ts";
import type { InputOf, OutputOf, StandardIssue, StandardSchema } from "./standard-schema.ts";
import { wordsOf } from "./words.ts";

// biome-ignore lint/suspicious/noExplicitAny: a constraint that any schema meets; inferred types are the schema's own
type AnySchema = StandardSchema<any, any>;

/** A kind made by `defineKind`. Use it in place of a kind's name: `swarm.submit({ kind: count, payload })`,
 *  `swarm.agent({ kind: count, handler })`. */
export interface TypedKind<Input extends AnySchema = AnySchema, Output extends AnySchema = AnySchema> {
  readonly name: string;
  readonly input: Input;
  readonly output: Output;
}

/** The output type of a schema. */
export type InferredOutput<Schema extends AnySchema> = OutputOf<Schema>;
/** Type of the payload that a submitter passes. */
export type PayloadOf<Kind extends TypedKind> = InputOf<Kind["input"]>;
/** Type of `task.input` in a handler. */
export type TaskInputOf<Kind extends TypedKind> = OutputOf<Kind["input"]>;
/** Type of a handler's return value. */
export type HandlerResultOf<Kind extends TypedKind> = InputOf<Kind["output"]>;
/** Type of `result.value` for a submitter. */
export type ResultValueOf<Kind extends TypedKind> = OutputOf<Kind["output"]>;

export interface KindSchemas<Input extends AnySchema, Output extends AnySchema> {
  /** Schema of the payload: any Standard Schema, for example of zod, valibot or arktype. May be asynchronous. */
  readonly input: Input;
  /** Schema of the result. */
  readonly output: Output;
}

const schema = z.custom<AnySchema>(isSchema, {
  error: 'must be a Standard Schema, such as z.object({ text: z.string() }) of zod; it has no "~standard"',
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

/** Defines a kind with checked and typed payloads and results. Submitters check the input before sending, and
 *  agents check it again before the handler runs. Agents check the output, and waiting clients check it again.
 *  Types are inferred from the schemas.
 *  @param name 1–128 printable characters without spaces
 *  @throws InvalidMessageError naming the problem */
export function defineKind<Input extends AnySchema, Output extends AnySchema>(
  name: string,
  schemas: KindSchemas<Input, Output>,
): TypedKind<Input, Output> {
  const { input, output } = readSchemas("defineKind", schemas) as KindSchemas<Input, Output>;
  return Object.freeze({ name: argument(["defineKind", "name"], name, kindSchema) as string, input, output });
}

/** True for a kind made by `defineKind`, or an object of the same form. */
export function isTypedKind(value: unknown): value is TypedKind {
  if (typeof value !== "object" || value === null) return false;
  const { name, input, output } = value as Partial<TypedKind>;
  return typeof name === "string" && isSchema(input) && isSchema(output);
}

export type CheckedJson<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string; readonly field: string };

/** The parsed value of a JSON text, or the path and message of each problem. Rejects with errors that the
 *  schema throws.
 *  @param what first part of each path: `payload`, `result` */
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
