// Checks the options and arguments of every public call: unknown names, missing names, wrong types. TypeScript
// catches most mistakes; plain JavaScript would convert a value or ignore a name. Not for the wire, where an
// unknown field may come from a later version. A call uses only the values that its reader returns. So each
// value is read once, and no getter or Proxy can answer differently later.

import * as z from "zod";
import { InvalidMessageError, type WaggleError, type WaggleErrorOptions } from "../errors.ts";
import { check } from "../protocol/codec.ts";
import { sentenceOf, shown } from "../protocol/sentence.ts";
import { nearMisses } from "../state/near-miss.ts";
import { isA, wordsOf } from "./words.ts";

export interface OptionRules<Options extends object> {
  /** Schema of each option, when given. */
  readonly each: { readonly [Name in keyof Options]-?: z.ZodType<Options[Name]> };
  readonly required?: readonly (keyof Options & string)[];
  /** Common wrong names, with the correct name or a hint. */
  readonly otherwise?: Readonly<Record<string, string>>;
  /** Whether a value of an unknown name is ignored: an object, and a number or
   *  null unless the name is near to an option's.
   *  Default false. */
  readonly ignoresFigures?: boolean;
  /** Shown when the value is not an object. */
  readonly example: string;
  /** Prefix of the refusal of a value that is not an object. Default `its options`. */
  readonly subject?: string;
}

/** Class of the error. */
type Refusal = new (message: string, options: WaggleErrorOptions) => WaggleError;

/** Hint in `otherwise` for `model`, which only the command line knows. */
export const weightOfModel = "weight: weightOf(model, prompt.length)";

/** Returns a reader of a call's options: a new object with the options that have a value. `call` is the prefix
 *  of each refusal; may be empty. @throws the refusal, naming the option as `field` */
export function readerOf<Options extends object>(
  rules: OptionRules<Options>,
  Refused: Refusal = InvalidMessageError,
): (call: string, given: unknown) => Options {
  return (call, given) => {
    const read = readIn(given === undefined ? {} : given, { subject: "its options", ...rules });
    if (read.ok) return read.value;
    throw refusalOf(Refused, call, read);
  };
}

/** Reads one argument of a call. @throws the refusal, naming the argument as `field` */
export function argument<Schema extends z.ZodType>(
  [call, name]: readonly [call: string, name: string],
  value: unknown,
  schema: Schema,
  Refused: Refusal = InvalidMessageError,
): z.infer<Schema> {
  const read = safely(() => {
    const found = check(value, schema, name);
    return found.ok ? found : { ok: false, message: found.message, field: found.field ?? name };
  });
  if (read.ok) return read.value;
  throw refusalOf(Refused, call, read);
}

/** Schema of an option that is itself an object of options. */
export function objectOf<Options extends object>(rules: OptionRules<Options>): z.ZodType<Options> {
  return z.unknown().transform((given, context): Options => {
    const read = readIn(given, { ...rules, subject: "" });
    if (read.ok) return read.value;
    const { message, field } = read;
    const path = field === undefined ? [] : [field];
    const own =
      field !== undefined && message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
    context.issues.push({ code: "custom", input: given, path, message: own });
    return z.NEVER;
  });
}

type Problem = { readonly ok: false; readonly message: string; readonly field?: string | undefined };
type Read<Value> = { readonly ok: true; readonly value: Value } | Problem;

function refusalOf(Refused: Refusal, call: string, { message, field }: Problem): WaggleError {
  const sentence = call === "" ? message : `${call}: ${message}`;
  return new Refused(sentence, field === undefined ? {} : { field });
}

function readIn<Options extends object>(given: unknown, rules: OptionRules<Options>): Read<Options> {
  return safely(() => {
    if (!isObject(given) || Array.isArray(given)) {
      const must = `must be an object such as ${rules.example}, not ${shown(given)}`;
      return { ok: false, message: `${rules.subject} ${must}`.trimStart() };
    }
    return unknownName(given, rules) ?? readEach(given, rules);
  });
}

/** Cached per rules: a program may read thousands of tasks. */
const entriesByRules = new WeakMap<object, readonly (readonly [name: string, schema: z.ZodType])[]>();

function entriesOf(each: object): readonly (readonly [name: string, schema: z.ZodType])[] {
  let entries = entriesByRules.get(each);
  if (entries === undefined) {
    entries = Object.entries<z.ZodType>(each as Record<string, z.ZodType>);
    entriesByRules.set(each, entries);
  }
  return entries;
}

function readEach<Options extends object>(
  given: object,
  { each, required }: OptionRules<Options>,
): Read<Options> {
  const read: Record<string, unknown> = {};
  for (const [name, schema] of entriesOf(each)) {
    const value: unknown = Reflect.get(given, name);
    if (value === undefined) {
      if (required?.some((one) => one === name))
        return { ok: false, message: `${name}: is missing`, field: name };
      continue;
    }
    const found = check(value, schema, name);
    if (!found.ok) return { ok: false, message: found.message, field: found.field ?? name };
    read[name] = found.value;
  }
  return { ok: true, value: read as Options };
}

/** The first name with a value that is no option: `maxAttempt: is unknown; did you mean maxAttempts?` */
function unknownName<Options extends object>(
  given: object,
  { each, otherwise = {}, ignoresFigures = false }: OptionRules<Options>,
): Problem | undefined {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(each, name)) continue;
    const value: unknown = Reflect.get(given, name);
    if (value === undefined || (ignoresFigures && isObject(value))) continue;
    const known = Object.keys(each);
    const meant = Object.hasOwn(otherwise, name) ? otherwise[name] : undefined;
    const near = meant === undefined ? nearMisses(name, known) : [meant];
    if (ignoresFigures && (typeof value === "number" || value === null) && near.length === 0) continue;
    const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : `there are ${known.join(", ")}`;
    return { ok: false, message: `${name}: is unknown; ${hint}`, field: name };
  }
  return undefined;
}

/** A getter, a Proxy or a `toString` of the caller may throw. */
function safely<Value>(read: () => Read<Value>): Read<Value> {
  try {
    return read();
  } catch (error) {
    return { ok: false, message: `cannot be read: ${wordsOf(error)}` };
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** @param problemOf returns the problem of a value, to follow the name of its field; undefined: no problem */
export function judged<Value>(problemOf: (input: unknown) => string | undefined): z.ZodType<Value> {
  return z.custom<Value>((input) => problemOf(input) === undefined, {
    error: ({ input }) => problemOf(input) ?? "is not valid",
  });
}

/** A duration, ms ≥ 0. Infinity: no limit. */
export const waitMs = judged<number>((input) => {
  if (typeof input !== "number" || Number.isNaN(input)) return `must be a number, not ${shown(input)}`;
  return input >= 0 ? undefined : `must be at least 0, not ${input}`;
});

/** Accepts the values of `schema`, or Infinity. */
export function orInfinity(schema: z.ZodType<number | undefined>): z.ZodType<number> {
  return judged((input) =>
    input === Number.POSITIVE_INFINITY
      ? undefined
      : schema.safeParse(input, { error: sentenceOf }).error?.issues[0]?.message,
  );
}

const LATEST_INSTANT_MS = 8.64e15;

/** A time: a Date, or ms since the Unix epoch. Read as whole ms. */
export const instant: z.ZodType<number> = judged<Date | number>((input) => {
  const ms = input instanceof Date || typeof input === "number" ? Number(input) : Number.NaN;
  if (!Number.isFinite(ms)) return `must be a Date or a number, not ${shown(input)}`;
  if (ms < 0) return `must be at least 0, not ${shown(input)}`;
  return ms <= LATEST_INSTANT_MS ? undefined : `must be at most ${LATEST_INSTANT_MS}, not ${shown(input)}`;
}).transform((time) => Math.trunc(Number(time)));

export const text = z.string();
export const flag = z.boolean();

export const oneOrSeveral: z.ZodType<string | string[]> = z.union([text, z.array(text)], {
  error: ({ input }) => `must be text or a list of texts, not ${shown(input)}`,
});

export const abortSignal = judged<AbortSignal>((input) =>
  isA(input, AbortSignal) ? undefined : `must be an AbortSignal, not ${shown(input)}`,
);

// biome-ignore lint/suspicious/noExplicitAny: what a function takes cannot be seen from outside
export function callback<Function extends (...given: any[]) => unknown>(): z.ZodType<Function> {
  return judged((input) =>
    typeof input === "function" ? undefined : `must be a function, not ${shown(input)}`,
  );
}

/** An object of this package or a library, recognised by methods that it must have. */
export function having<Thing extends object>(
  what: string,
  ...methods: (keyof Thing & string)[]
): z.ZodType<Thing> {
  return judged((input) => {
    const has = (name: string) => isObject(input) && typeof Reflect.get(input, name) === "function";
    return methods.every(has) ? undefined : `must be ${what}, not ${shown(input)}`;
  });
}
