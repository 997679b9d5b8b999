// Chunks of results on the way to the session, per attempt. The first chunk passes at once; later chunks wait for the
// next interval and share a message. Chunks that come faster than they leave are dropped, oldest first: readers see the
// gap in their numbers, and the result is whole in any case.

import { Buffer } from "node:buffer";
import type { Clock } from "../clock.ts";
import { InvalidMessageError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Chunk } from "../protocol/schemas.ts";
import type { AttemptKey, EmittedChunks } from "./link.ts";
import { type WireTextTerms, wireTextOf } from "./result-text.ts";

interface Waiting {
  /** Number of the next chunk. */
  next: number;
  chunks: Chunk[];
  bytes: number;
}

export class ChunkBuffer {
  readonly #clock: Clock;
  readonly #pass: (emitted: EmittedChunks) => void;
  readonly #waiting = new Map<AttemptKey, Waiting>();
  #isResting = false;

  constructor(clock: Clock, pass: (emitted: EmittedChunks) => void) {
    this.#clock = clock;
    this.#pass = pass;
  }

  add(key: AttemptKey, chunk: Chunk): void {
    const waiting = this.#waiting.get(key) ?? { next: 0, chunks: [], bytes: 0 };
    this.#waiting.set(key, waiting);
    waiting.next += 1;
    waiting.chunks.push(chunk);
    waiting.bytes += Buffer.byteLength(chunk.text);
    if (waiting.bytes > 2 * limits.waitingChunksBytesMax) dropOldest(waiting); // seldom: each time moves all others
    if (!this.#isResting) this.#flushAll();
  }

  /** Passes on the last chunks of an attempt that has ended. */
  end(key: AttemptKey): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#flush(key, waiting);
    this.#waiting.delete(key);
  }

  #flush(key: AttemptKey, waiting: Waiting): void {
    dropOldest(waiting);
    const { chunks, next } = waiting;
    if (chunks.length === 0) return;
    waiting.chunks = [];
    waiting.bytes = 0;
    this.#pass({ key, first: next - chunks.length, chunks });
  }

  #flushAll(): void {
    let isEmpty = true;
    for (const [key, waiting] of this.#waiting) {
      if (waiting.chunks.length > 0) isEmpty = false;
      this.#flush(key, waiting);
    }
    this.#isResting = !isEmpty;
    if (this.#isResting) this.#clock.after(limits.chunksMs, () => this.#flushAll(), { unref: true });
  }
}

function dropOldest(waiting: Waiting): void {
  let dropped = 0;
  for (; waiting.bytes > limits.waitingChunksBytesMax; dropped += 1)
    waiting.bytes -= Buffer.byteLength(waiting.chunks[dropped]?.text ?? "");
  if (dropped > 0) waiting.chunks.splice(0, dropped);
}

/** Groups of chunks, each at most `bytesMax` as JSON; undefined in place of a single larger chunk. */
export function* inMessages(
  chunks: readonly Chunk[],
  bytesMax: number,
): Generator<readonly Chunk[] | undefined> {
  let from = 0;
  let bytes = 0;
  for (const [at, chunk] of chunks.entries()) {
    const own = Buffer.byteLength(JSON.stringify(chunk)) + 1;
    if (bytes + own > bytesMax && at > from) {
      yield chunks.slice(from, at);
      [from, bytes] = [at, 0];
    }
    if (own > bytesMax) {
      yield undefined;
      from = at + 1;
    } else bytes += own;
  }
  if (from < chunks.length) yield chunks.slice(from);
}

/** A chunk in its form on the wire. @throws InvalidMessageError as `HandlerContext.emit` */
export function chunkOf(value: unknown): Chunk {
  return wireTextOf(value, chunkTerms);
}

const chunkTerms: WireTextTerms = {
  what: "chunk",
  bytesMax: limits.chunkBytesMax,
  remedy: "emit it in parts",
  refused: (message, options) => new InvalidMessageError(message, { ...options, field: "chunk" }),
};

/** Emits bytes of UTF-8 as text, however they are cut. Bytes that are no UTF-8 become U+FFFD; the result has them. */
export function textEmitter(emit: (text: string) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder();
  return (bytes) => {
    for (let at = 0; at < bytes.length; at += PART_BYTES) {
      const text = decoder.decode(bytes.subarray(at, at + PART_BYTES), { stream: true });
      if (text !== "") emit(text);
    }
  };
}

/** A value in parts that pass as chunks: text and bytes are cut, any other value is one part. */
export function* partsOf(value: unknown): Generator<unknown> {
  if (value instanceof Uint8Array) {
    for (let at = 0; at === 0 || at < value.length; at += PART_BYTES)
      yield value.subarray(at, at + PART_BYTES);
  } else if (typeof value === "string" && value.length > PART_BYTES) {
    for (let at = 0, end = 0; at < value.length; at = end) {
      end = at + PART_BYTES;
      if (isHighSurrogate(value.charCodeAt(end - 1))) end += 1;
      yield value.slice(at, end);
    }
  } else yield value;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** A byte becomes at most three: U+FFFD. A unit of UTF-16 does too. */
const PART_BYTES = Math.floor(limits.chunkBytesMax / 3);
