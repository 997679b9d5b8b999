// Batches read by their index across segments: pages and outcomes, whatever stands between and whatever was removed.

import { beforeEach, describe, expect, it } from "vitest";
import { MissingRecordsError } from "../../src/errors.ts";
import { term } from "../../src/ids.ts";
import { LogReader } from "../../src/journal/log-reader.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { type ChainTail, hashOf } from "../../src/journal/records.ts";
import { Rival } from "../support/stored.ts";

const renewed = { type: "TermRenewed" } as const;
let store: MemoryJournalStore;
let writer: Rival;
let reader: LogReader;
let tail: ChainTail;

/** Batches 1 to 3 in segment 1, 4 to 6 in segment 2 with a foreign record between, 7 to 9 in segment 3. */
beforeEach(() => {
  store = new MemoryJournalStore();
  writer = new Rival(store, "writer");
  reader = new LogReader(new MemoryJournal(store));
  tail = writer.begin(3);
  for (let n = 0; n < 2; n += 1) {
    store.seal(store.list().at(-1) ?? 0);
    const number = writer.claim();
    const { opened } = writer.open(number, tail, number - 1);
    tail = writer.start(number, tail, opened);
    if (number === 2) store.insert(2, Buffer.from("foreign"));
    for (let more = 0; more < 2; more += 1) tail = writer.batch(number, tail, [renewed]);
  }
});

async function read(from: number): Promise<number[]> {
  const found: number[] = [];
  for await (const { header } of reader.replay(from)) found.push(header.idx);
  return found;
}

describe("batches", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 9])("from %i on are read over all segments, in order", async (from) => {
    expect(await read(from)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].slice(from - 1));
  });

  it("after the end do not exist", async () => {
    expect(await read(10).catch((error: unknown) => error)).toBeInstanceOf(MissingRecordsError);
  });

  it("form a chain as they are read", async () => {
    let prev = "";
    for await (const { header, bytes } of reader.replay(1)) {
      expect(header.prev).toBe(prev);
      prev = hashOf(bytes);
    }
    expect(prev).toBe(tail.hash);
  });

  it("are read by index, after a foreign record too", async () => {
    for (let idx = 1; idx <= 9; idx += 1) expect((await reader.batch(idx))?.idx).toBe(idx);
    expect(await reader.batch(10)).toBeUndefined();
  });

  it("begin with the first batch of the oldest segment", async () => {
    expect(await reader.firstIdx()).toBe(1);
    store.remove(1);
    reader.changed();
    expect(await reader.firstIdx()).toBe(4);
    expect(await read(4)).toEqual([4, 5, 6, 7, 8, 9]);
    expect(await reader.batch(2)).toBeUndefined();
  });

  it("of a segment removed meanwhile are missed once, then the segments are listed again", async () => {
    expect(await read(1)).toHaveLength(9);
    store.remove(1);
    await expect(read(1)).rejects.toThrow();
    await expect(read(1)).rejects.toThrow();
    expect(await read(5)).toEqual([5, 6, 7, 8, 9]);
  });

  it("of a segment opened later are read after `changed`", async () => {
    expect(await read(9)).toEqual([9]);
    const number = writer.claim();
    const { opened } = writer.open(number, tail, number - 1);
    writer.start(number, { ...tail, term: term(number) }, opened);
    reader.changed();
    expect(await read(9)).toEqual([9, 10]);
  });

  it("written to the segment by a different session are skipped", async () => {
    const stranger = new Rival(store, "stranger");
    stranger.batch(3, { ...tail, idx: (tail.idx - 3) as typeof tail.idx }, [renewed]);
    stranger.batch(3, tail, [renewed]);
    expect(await read(6)).toEqual([6, 7, 8, 9]);
    expect(await reader.batch(10)).toBeUndefined();
  });
});
