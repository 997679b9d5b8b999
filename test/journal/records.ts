// Records for journal tests: bytes that name themselves, and journals filled with them.

import { expect } from "vitest";
import type { Journal, JournalRecord } from "../../src/journal/journal.ts";

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

/** `record 7` at position 7, and so on up to `lastSeq`; all appends overlap. */
export async function fill(journal: Journal, lastSeq: number, fromSeq = 1): Promise<void> {
  const outcomes = await Promise.all(
    range(fromSeq, lastSeq).map((seq) => journal.append(bytesOf(`record ${seq}`), seq - 1)),
  );
  expect(outcomes).toEqual(range(fromSeq, lastSeq).map((seq) => ({ kind: "stored", seq })));
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => from + index);
}

/** `7:record 7`: what transcripts of journals are compared by. */
export function told({ seq, bytes }: JournalRecord): string {
  return `${seq}:${decoder.decode(bytes)}`;
}

/** What `fill` leaves behind, as `told`. */
export function toldOf(fromSeq: number, toSeq: number): string[] {
  return range(fromSeq, toSeq).map((seq) => `${seq}:record ${seq}`);
}

export async function tell(records: AsyncIterable<JournalRecord>): Promise<string[]> {
  const lines: string[] = [];
  for await (const record of records) lines.push(told(record));
  return lines;
}

/** Follows in the background and says when it has come so far. */
export class Follower {
  readonly lines: string[] = [];
  readonly ended: Promise<void>;
  readonly #abort = new AbortController();
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  constructor(journal: Journal, fromSeq = 1) {
    this.ended = this.#run(journal.follow(fromSeq, this.#abort.signal));
    this.ended.catch(() => undefined); // whoever awaits `ended` or `stop` sees it
  }

  /** Resolves when so many records have come. @throws what ended the following before that */
  async hasRead(count: number): Promise<void> {
    if (this.lines.length >= count) return;
    const come = new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
    const end = this.ended.then(() => {
      throw new Error(`following ended after ${this.lines.length} of ${count} records`);
    });
    await Promise.race([come, end]);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }

  async #run(records: AsyncIterable<JournalRecord>): Promise<void> {
    for await (const record of records) {
      this.lines.push(told(record));
      for (const { count, resolve } of this.#waiting) if (this.lines.length >= count) resolve();
    }
  }
}
