// Records for tests of journals: bytes with a name, segments full of records, and followers.

import { expect } from "vitest";
import type { Segment, SegmentRecord } from "../../src/journal/journal.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** `size` bytes of all values, different for each `seed`. */
export function noise(size: number, seed = 1): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length: size }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}

/** Appends `record 7` at position 7, and so on up to `last`; all appends overlap. */
export async function fill(segment: Segment, last: number, from = 1): Promise<void> {
  const positions = range(from, last);
  const outcomes = await Promise.all(
    positions.map((position) => segment.append(bytesOf(`record ${position}`), position - 1)),
  );
  expect(outcomes).toEqual(positions.map(() => ({ kind: "stored" })));
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => from + index);
}

/** `7:record 7` */
function lineOf({ position, bytes }: SegmentRecord): string {
  return `${position}:${decoder.decode(bytes)}`;
}

/** Lines of the records that `fill` appends. */
export function filled(from: number, to: number): string[] {
  return range(from, to).map((position) => `${position}:record ${position}`);
}

export async function linesOf(records: AsyncIterable<SegmentRecord>): Promise<string[]> {
  const lines: string[] = [];
  for await (const record of records) lines.push(lineOf(record));
  return lines;
}

/** Follows a segment in the background. */
export class Follower {
  readonly lines: string[] = [];
  readonly ended: Promise<void>;
  readonly #abort = new AbortController();
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  constructor(segment: Segment, from = 1) {
    this.ended = this.#run(segment.follow(from, this.#abort.signal));
    this.ended.catch(() => undefined); // thrown to the test by `ended`, `hasRead` or `stop`
  }

  /** Resolves after `count` records. @throws the error that ended the following earlier */
  async hasRead(count: number): Promise<void> {
    if (this.lines.length >= count) return;
    const reached = new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
    const ended = this.ended.then(() => {
      throw new Error(`following ended after ${this.lines.length} of ${count} records`);
    });
    await Promise.race([reached, ended]);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }

  async #run(records: AsyncIterable<SegmentRecord>): Promise<void> {
    for await (const record of records) {
      this.lines.push(lineOf(record));
      for (const { count, resolve } of this.#waiting) if (this.lines.length >= count) resolve();
    }
  }
}
