// Finds the segments of the log by listing, whatever foreign records the segments hold.

import { beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { claimantOf } from "../../src/journal/inspect.ts";
import type { SegmentReader } from "../../src/journal/journal.ts";
import { findLive, lastBatchIdxOf, liveSegment, pathTo } from "../../src/journal/live.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { Rival } from "../support/stored.ts";

let store: MemoryJournalStore;
let journal: MemoryJournal;
let writer: Rival;

beforeEach(() => {
  store = new MemoryJournalStore();
  journal = new MemoryJournal(store);
  writer = new Rival(store, "writer");
});

describe("the live segment", () => {
  it("is undefined in an empty journal, and if the only segment was claimed but never opened", async () => {
    expect(await findLive(journal)).toEqual({ numbers: [], live: undefined });
    writer.claim();
    expect(await findLive(journal)).toEqual({ numbers: [1], live: undefined });
  });

  it("is the open segment with the highest number", async () => {
    const tail = writer.begin(2);
    writer.takeLead(tail);
    writer.claim();
    const { numbers, live } = await findLive(journal);
    expect([numbers, live?.number, live?.opened.tail.hash]).toEqual([[1, 2, 3], 2, tail.hash]);
  });

  it("is opened by its claimant alone: a foreign `Opened`, before or after, opens nothing", async () => {
    const tail = writer.begin(2);
    const number = writer.claim();
    new Rival(store, "stranger").open(number, tail, 1);
    expect((await findLive(journal)).live?.number).toBe(1);
    writer.open(number, tail, 1);
    new Rival(store, "stranger").open(number, tail, 1);
    expect((await findLive(journal)).live).toMatchObject({
      number,
      position: 3,
      opened: { session: "writer" },
    });
  });

  it("is not opened by an `Opened` with the number of a different segment", async () => {
    const tail = writer.begin(2);
    const number = writer.claim();
    const opened = store.opened(1)?.bytes ?? new Uint8Array();
    store.insert(number, opened, true);
    expect(await liveSegment(journal.segment(number))).toBeUndefined();
    expect((await findLive(journal)).live?.number).toBe(1);
    expect(tail.idx).toBe(2);
  });

  it("may have lost its claim, or have an unreadable claim", async () => {
    writer.begin(2);
    store.damageRecord(1, 1);
    expect((await findLive(journal)).live?.number).toBe(1);
    store.loseRecords(1, 1);
    expect(await claimantOf(journal.segment(1))).toBeUndefined();
    expect((await findLive(journal)).live?.number).toBe(1);
  });

  it("is found though the storage lost a later record and cannot find the `Opened` by subject", async () => {
    writer.begin(3);
    const whole = journal.segment(1);
    const segment: SegmentReader = {
      number: 1,
      end: () => whole.end(),
      read: (position) => whole.read(position),
      replay: (from, options) => whole.replay(from, options),
      opened: async () => undefined,
    };
    expect(await liveSegment(segment)).toBeUndefined();
    store.loseRecords(1, 4);
    expect(await liveSegment(segment)).toMatchObject({ number: 1, position: 2 });
  });

  it("does not exist if the `Opened` is unreadable", async () => {
    const tail = writer.begin(2);
    writer.takeLead(tail);
    store.damageRecord(2, 2);
    expect((await findLive(journal)).live?.number).toBe(1);
  });
});

describe("the path to a segment", () => {
  it("lists all predecessors, from the first permitted segment on", async () => {
    let tail = writer.begin(2);
    for (let n = 0; n < 3; n += 1) {
      const number = writer.takeLead(tail);
      tail = writer.batch(number, (await endOf(number)) ?? tail, [{ type: "TermRenewed" }]);
    }
    const { live } = await findLive(journal);
    if (live === undefined) return expect.fail("a segment is live");
    const numbers = async (isFirst: (number: number) => boolean) =>
      (await pathTo(journal, live, ({ number }) => isFirst(number))).map(({ number }) => number);
    expect(await numbers(() => false)).toEqual([1, 2, 3, 4]);
    expect(await numbers((number) => number === 3)).toEqual([3, 4]);
    expect(await numbers(() => true)).toEqual([4]);
    store.loseSegment(2);
    expect(await numbers((number) => number === 3)).toEqual([3, 4]);
    await expect(numbers(() => false)).rejects.toBeInstanceOf(JournalDamagedError);
  });

  /** The tail behind a segment's first batch. */
  async function endOf(number: number) {
    const { Replay } = await import("../../src/journal/replay.ts");
    const live = await liveSegment(journal.segment(number));
    if (live === undefined) return undefined;
    const replay = new Replay({ state: new Replay().state, tail: live.opened.tail });
    replay.enter(live, live.position);
    for await (const record of journal.segment(number).replay(live.position + 1)) replay.take(record);
    return replay.tail;
  }
});

describe("the last batch of a segment that is not live", () => {
  it("is the claimant's last batch, with foreign records after it and missing records before it", async () => {
    const tail = writer.begin(4);
    expect(await lastBatchIdxOf(journal.segment(1))).toBe(tail.idx);
    store.insert(1, Buffer.from("nobody's"));
    store.loseRecords(1, 2, 3);
    expect(await lastBatchIdxOf(journal.segment(1))).toBe(tail.idx);
    store.damageRecord(1, 6);
    expect(await lastBatchIdxOf(journal.segment(1))).toBe(tail.idx - 1);
  });

  it("is none if only a claim, or only batches of a different session, are stored", async () => {
    expect(await lastBatchIdxOf(journal.segment(1))).toBe(0);
    const tail = writer.begin(2);
    const number = new Rival(store, "other").claim();
    expect(await lastBatchIdxOf(journal.segment(number))).toBe(0);
    writer.batch(number, tail, [{ type: "TermRenewed" }]);
    expect(await lastBatchIdxOf(journal.segment(number))).toBe(0);
  });

  it("is none in a segment without a claim that begins with a foreign batch", async () => {
    const tail = writer.begin(2);
    store.create(2);
    writer.batch(2, tail, [{ type: "TermRenewed" }]);
    expect(await lastBatchIdxOf(journal.segment(2))).toBe(0);
    store.damageRecord(2, 1); // as an unreadable claim
    writer.batch(2, tail, [{ type: "TermRenewed" }]);
    expect(await lastBatchIdxOf(journal.segment(2))).toBe(tail.idx + 1);
  });
});
