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
  if (value instanceof Uint8Array) {
    return {
      result: checked(Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64")),
      encoding: "base64",
    };
  }
  return { result: checked(typeof value === "string" ? value : jsonOf(value)) };
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

function jsonOf(value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    throw new UnusableResultError(`the result cannot be written as JSON: ${wordsOf(cause)}`, { cause });
  }
  if (json === undefined) throw new UnusableResultError(`a ${typeof value} cannot be a result`);
  return json;
}

function checked(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= limits.payloadBytesMax) return text;
  throw new UnusableResultError(
    `the result has ${bytes} bytes, above the maximum of ${limits.payloadBytesMax}: store it elsewhere and return a reference`,
  );
}
