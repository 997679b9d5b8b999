// Words for values of user code, whatever they are. Reading such a value may throw: a getter, a Proxy, a `toString`.
// Nothing here throws, and words for one value are no longer than `limits.errorCharactersMax`.

import { format, inspect, types } from "node:util";
import { headOf } from "../cut-text.ts";
import { limits } from "../limits.ts";

/** Names that say no more than the outcome does. */
const plainNames = new Set(["Error", "InfrastructureError", "InvalidInputError", "UnusableResultError"]);

/** What is said of whatever a handler threw; never empty. */
export function wordsOf(thrown: unknown): string {
  const words = attempted(
    () => errorWords(thrown),
    (cause) => unreadableWords("what was thrown", thrown, cause),
  );
  const head = headOf(words, limits.errorCharactersMax);
  return head.trim() === "" ? "an error without a message was thrown" : head;
}

/** Any value as text: text as it is, an error as its message, anything else as `console.log` would show it. */
export function textOf(value: unknown): string {
  const text = attempted(
    () => (typeof value === "string" ? value : errorWords(value)),
    (cause) => unreadableWords("a value", value, cause),
  );
  return headOf(text, limits.errorCharactersMax);
}

/** A line as `console.log` writes it. */
export function lineOf(values: readonly unknown[]): string {
  return attempted(
    () => format(...values),
    () => values.map(textOf).join(" "),
  );
}

/** `instanceof` for a value that may throw when its prototype is asked for. */
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

/** `what was thrown, of class ApiError, cannot be read (TypeError: …)`. */
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
