// Text for arbitrary values of user code. Reading a value may throw: a getter, a Proxy, a `toString`. The functions
// here never throw, and the text for a value has at most `limits.errorCharactersMax` characters.

import { format, inspect, types } from "node:util";
import { headOf } from "../cut-text.ts";
import { limits } from "../limits.ts";

/** Names without information on the outcome. */
const plainNames = new Set(["Error", "InfrastructureError", "InvalidInputError", "UnusableResultError"]);

/** Text for a value thrown by a handler; never empty. */
export function wordsOf(thrown: unknown): string {
  const words = attempted(
    () => errorWords(thrown),
    (cause) => unreadableWords("the thrown value", thrown, cause),
  );
  const head = headOf(words, limits.errorCharactersMax);
  return head.trim() === "" ? "an error without a message was thrown" : head;
}

/** Class and code of a value thrown by a handler, without its text: `TypeError`, `Error (ECONNRESET)`. Text of user
 *  code that looks like neither is left out. */
export function classAndCodeOf(thrown: unknown): string {
  const name = attempted(
    () => (isError(thrown) ? String(thrown.name) : (nameOfClass(thrown) ?? "")),
    () => "",
  );
  const code: unknown = attempted(
    () => (isError(thrown) ? Reflect.get(thrown, "code") : undefined),
    () => undefined,
  );
  const what = /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? name : "Error";
  const isCode = (typeof code === "string" || typeof code === "number") && /^[\w .-]{1,64}$/.test(`${code}`);
  return isCode ? `${what} (${code})` : what;
}

/** Any value as text: a string as is, an error as its message, the rest as shown by `console.log`. */
export function textOf(value: unknown): string {
  const text = attempted(
    () => (typeof value === "string" ? value : errorWords(value)),
    (cause) => unreadableWords("a value", value, cause),
  );
  return headOf(text, limits.errorCharactersMax);
}

/** A line as written by `console.log`. */
export function lineOf(values: readonly unknown[]): string {
  return attempted(
    () => format(...values),
    () => values.map(textOf).join(" "),
  );
}

/** `instanceof` for a value whose prototype may throw when read. */
export function isA<Class>(value: unknown, of: new (...args: never[]) => Class): value is Class {
  return attempted(
    () => value instanceof of,
    () => false,
  );
}

function errorWords(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  if (!isError(thrown)) return onOneLine(thrown);
  const message = typeof thrown.message === "string" ? thrown.message : onOneLine(thrown.message);
  const name = attempted(
    () => String(thrown.name),
    () => "",
  );
  if (name === "" || plainNames.has(name)) return message;
  return message === "" ? name : `${name}: ${message}`;
}

function isError(value: unknown): value is { readonly message: unknown; readonly name: unknown } {
  return value instanceof Error || types.isNativeError(value);
}

function onOneLine(value: unknown): string {
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY });
}

/** `the thrown value, of class ApiError, cannot be read (TypeError: …)`. */
function unreadableWords(what: string, value: unknown, cause: unknown): string {
  const name = attempted(
    () => nameOfClass(value),
    () => undefined,
  );
  const why = attempted(
    () => ` (${errorWords(cause)})`,
    () => "",
  );
  return `${name === undefined ? what : `${what}, of class ${name},`} cannot be read${why}`;
}

function nameOfClass(value: unknown): string | undefined {
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === "string" && name !== "" ? name : undefined;
}

function attempted<Value>(read: () => Value, otherwise: (cause: unknown) => Value): Value {
  try {
    return read();
  } catch (cause) {
    return otherwise(cause);
  }
}
