// Converts a handler's return value to its form on the wire.

import { Buffer } from "node:buffer";
import { limits } from "../limits.ts";
import { wordsOf } from "./words.ts";

/** A result in its form on the wire; both fields absent without a result. */
export interface ResultText {
  readonly result?: string;
  readonly encoding?: "base64";
}

/** A value that cannot be a result; the message says why. */
export class UnusableResultError extends Error {
  override readonly name = "UnusableResultError";
}

/** @throws UnusableResultError when the value is not JSON, or larger than `limits.payloadBytesMax` */
export function resultText(value: unknown): ResultText {
  if (value === undefined) return {};
  const { text: result, ...rest } = wireTextOf(value, resultTerms);
  return { result, ...rest };
}

/** How a value that cannot be sent is refused. */
export interface WireTextTerms {
  readonly what: "result" | "chunk";
  readonly bytesMax: number;
  /** For a value above `bytesMax`, without a full stop. */
  readonly remedy: string;
  /** Makes the error. */
  readonly refused: (message: string, options?: ErrorOptions) => Error;
}

const resultTerms: WireTextTerms = {
  what: "result",
  bytesMax: limits.payloadBytesMax,
  remedy: "store it elsewhere and return a reference",
  refused: (message, options) => new UnusableResultError(message, options),
};

/** A handler's value in its form on the wire: a string as is, bytes as base64, any other value as JSON.
 *  @throws the error of `terms` */
export function wireTextOf(
  value: unknown,
  terms: WireTextTerms,
): { readonly text: string; readonly encoding?: "base64" } {
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
    return { text: checked(text, terms), encoding: "base64" };
  }
  return { text: checked(typeof value === "string" ? value : jsonOf(value, terms), terms) };
}

/** Text for valid UTF-8, the bytes otherwise. */
export function textOrBase64(bytes: Uint8Array): string | Uint8Array {
  try {
    return utf8.decode(bytes);
  } catch {
    return bytes; // not UTF-8: the caller's answer is bytes
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function jsonOf(value: unknown, { what, refused }: WireTextTerms): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    throw refused(`the ${what} cannot be written as JSON: ${wordsOf(cause)}`, { cause });
  }
  if (json === undefined) {
    const given = value === undefined ? "undefined" : `a ${typeof value}`;
    throw refused(`${given} cannot be a ${what}`);
  }
  return json;
}

function checked(text: string, { what, bytesMax, remedy, refused }: WireTextTerms): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  throw refused(`the ${what} has ${bytes} bytes, above the maximum of ${bytesMax}: ${remedy}`);
}
