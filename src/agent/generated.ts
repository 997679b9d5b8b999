// Handlers that are generators: each yielded value is emitted as a chunk, and the returned value is the result.

import { Buffer } from "node:buffer";
import { partsOf } from "./chunk-buffer.ts";

/** What a call of a generator function returns. */
export type Generated = AsyncIterator<unknown, unknown> | Iterator<unknown, unknown>;

/** Arrays, maps and streams are values or sources of values, not generators. */
export function isGenerated(value: unknown): value is Generated {
  if (typeof value !== "object" || value === null) return false;
  const tag = Object.prototype.toString.call(value);
  return tag === "[object AsyncGenerator]" || tag === "[object Generator]";
}

/** Runs a generator to its end, and emits each yielded value, large text and bytes in parts. After an abort of `signal`
 *  the generator ends at its next yield.
 *  @returns the generator's return value. Without a return value: the yielded values, joined if all are text or bytes
 *    (text among bytes as UTF-8), else as an array with bytes as base64
 *  @throws the errors of the generator and of `emit`; the reason of `signal` */
export async function resultOf(
  generated: Generated,
  emit: (chunk: unknown) => void,
  signal: AbortSignal,
): Promise<unknown> {
  const yielded: unknown[] = [];
  for (;;) {
    const { done, value } = await generated.next();
    if (done === true) return value === undefined ? joined(yielded) : value;
    try {
      signal.throwIfAborted();
      for (const part of partsOf(value)) emit(part);
    } catch (error) {
      await generated.return?.(undefined); // runs its `finally`
      throw error;
    }
    yielded.push(value);
  }
}

function joined(yielded: readonly unknown[]): unknown {
  if (yielded.length === 0) return undefined;
  if (yielded.every((value) => typeof value === "string")) return yielded.join("");
  if (yielded.every(isTextOrBytes))
    return Buffer.concat(yielded.map((value) => (typeof value === "string" ? Buffer.from(value) : value)));
  return yielded.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
}

function isTextOrBytes(value: unknown): value is string | Uint8Array {
  return typeof value === "string" || value instanceof Uint8Array;
}
