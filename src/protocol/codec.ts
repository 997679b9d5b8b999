// Bytes to checked messages and back. Depth is checked on the bytes before JSON.parse: 10,000 nested arrays
// parse well and then overflow the stack of JSON.stringify.
// Not here: what the messages mean.

import type { z } from "zod";
import { headOf } from "../cut-text.ts";
import { limits } from "../limits.ts";
import type { CodedError } from "./schemas.ts";
import { sentenceOf } from "./sentence.ts";

export type Decoded<Value> = { readonly ok: true; readonly value: Value } | CodedError;

const utf8 = new TextDecoder("utf-8", { fatal: true });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** JSON of anything we built ourselves, as bytes. */
export function encode(message: unknown): Uint8Array {
  return encodeText(JSON.stringify(message));
}

/** JSON as bytes. */
export function encodeText(json: string): Uint8Array {
  return Buffer.from(json); // for short texts several times as fast as TextEncoder
}

/** Parses and checks a message; a failure becomes a coded error that names the field. */
export function decode<Schema extends z.ZodType>(
  bytes: Uint8Array,
  schema: Schema,
): Decoded<z.infer<Schema>> {
  const parsed = parseJson(bytes);
  return parsed.ok ? check(parsed.value, schema) : parsed;
}

/** Checks a value against a schema; `prefix` is the value's path in the message, for the error. */
export function check<Schema extends z.ZodType>(
  value: unknown,
  schema: Schema,
  prefix = "",
): Decoded<z.infer<Schema>> {
  // Without sentences first: parsing with them takes several times as long, and nearly every message is right.
  const right = schema.safeParse(value);
  if (right.success) return { ok: true, value: right.data };
  const checked = schema.safeParse(value, { error: sentenceOf });
  if (checked.success) return { ok: true, value: checked.data };
  const issue = checked.error.issues[0];
  const field = fieldPath(prefix, issue?.path ?? []);
  const cause = issue?.code === "invalid_key" ? issue.issues[0] : issue;
  return invalid(`${field === "" ? "the message" : field}: ${cause?.message ?? "is not valid"}`, field);
}

/** JSON within the depth limit, or a coded error. */
export function parseJson(bytes: Uint8Array): Decoded<unknown> {
  if (isDeeperThan(bytes, limits.jsonDepthMax))
    return invalid(`the message: is nested deeper than ${limits.jsonDepthMax} levels`);
  try {
    return { ok: true, value: parseText(bytes) };
  } catch (cause) {
    return invalid(
      `the message: is not JSON in UTF-8 (${cause instanceof Error ? headOf(cause.message, 120) : "unreadable"})`,
    );
  }
}

/** JSON in UTF-8, of any depth. @throws when the bytes are no JSON in UTF-8 */
export function parseText(bytes: Uint8Array): unknown {
  return JSON.parse(utf8.decode(bytes));
}

/** The error about an invalid message. */
export function invalid(message: string, field?: string): CodedError {
  return {
    ok: false,
    code: "WAGGLE_INVALID_MESSAGE",
    message,
    ...(field === undefined || field === "" ? {} : { field }),
  };
}

/** Whether brackets outside strings nest deeper than `depthMax`. Does not check whether brackets match. */
export function isDeeperThan(bytes: Uint8Array, depthMax: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
  }
  return false;
}

function fieldPath(prefix: string, path: readonly PropertyKey[]): string {
  let text = prefix;
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return headOf(text, limits.errorFieldCharactersMax);
}
