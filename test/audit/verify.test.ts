// Checking a whole journal: nothing is found in a journal as written, and every change is found and named.

import { describe, expect, it } from "vitest";
import { type Verification, verifyJournal } from "../../src/audit/verifying/verify.ts";
import type { JournalReader } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { salvage } from "../../src/journal/salvage.ts";
import { MemoryLedLog } from "../coordinator/compacting/led-log.ts";
import { noise } from "../journal/records.ts";
import { aCompactedLog, aLongLog, placeOf, Tampered } from "../journal/tampered.ts";

async function verified(log: MemoryLedLog, journal: JournalReader = new MemoryJournal(log.store)) {
  const found = await verifyJournal({ journal, clock: log.clock });
  return found ?? expect.fail("the journal has a live segment");
}

const toPriority9 = (text: string) => text.replace(/"priority":\d+|"kind":"k"/, '"kind":"K"');

describe("a whole journal", () => {
  it("is good to its end, without a base", async () => {
    const log = await aLongLog();
    expect(await verified(log)).toMatchObject({
      segments: [1, 2, 3],
      firstIdx: 1,
      tail: log.tail,
      batches: log.tail.idx,
      basesCompared: 0,
      foreign: 0,
      gaps: [],
      fault: undefined,
    } satisfies Partial<Verification>);
  });

  it("is good to its end, with the state of each base compared", async () => {
    const log = await aCompactedLog();
    const found = await verified(log);
    expect(found.fault).toBeUndefined();
    expect(found).toMatchObject({ basesCompared: 2, basesTaken: 0, batches: log.tail.idx, tail: log.tail });
  });

  it("is good from its first kept base on", async () => {
    const log = await aCompactedLog();
    await log.journal.remove(1);
    const found = await verified(log);
    expect(found.fault).toBeUndefined();
    expect(found).toMatchObject({ segments: [2, 3], firstIdx: 11, basesTaken: 1, basesCompared: 1 });
  });

  it("is good where the segment before the newest base is kept without its own beginning", async () => {
    const log = await aCompactedLog();
    await log.continueIn(4);
    await log.submit(9);
    const made = await log.make(5);
    await log.changeTo(made);
    await log.submit(2);
    for (const segment of [1, 2, 3]) await log.journal.remove(segment);
    const { fault, firstIdx, gaps } = await verified(log);
    expect(fault).toBeUndefined();
    expect(firstIdx).toBe(log.live.opened.base?.idx === undefined ? 0 : log.live.opened.base.idx + 1);
    expect(gaps).toEqual([{ from: 1, to: expect.any(Number), isAdmitted: false }]);
    const [segment, position] = await placeOf(log, firstIdx - 4);
    expect(segment).toBe(4);
    const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, (text) =>
      text.replace('"kind":"k"', '"kind":"K"'),
    );
    const changed = await verifyJournal({ journal, clock: log.clock });
    expect(changed?.fault).toMatchObject({ kind: "changed", segment: 4, idx: firstIdx - 4 });
  });

  it("names each good batch, in order", async () => {
    const log = await aCompactedLog();
    const named: number[] = [];
    const journal = new MemoryJournal(log.store);
    await verifyJournal({ journal, clock: log.clock, onBatch: ({ idx }) => void named.push(idx) });
    expect(named).toEqual(Array.from({ length: log.tail.idx }, (_, at) => at + 1));
  });
});

describe("a changed journal", () => {
  it.each([
    ["without a base", aLongLog],
    ["with a base behind", aCompactedLog],
  ])("names the first changed batch, %s", async (_, aLog) => {
    const log = await aLog();
    for (const idx of [1, 4, 13, 25]) {
      const [segment, position] = await placeOf(log, idx);
      const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, (text) =>
        text.replace('"at":', '"at": '),
      );
      const { fault } = await verified(log, journal);
      expect(fault).toMatchObject({ kind: "changed", segment, position, idx });
      expect(fault?.events?.length).toBeGreaterThan(0);
    }
  });

  it("names the change if a copy shows the original", async () => {
    const log = await aCompactedLog();
    const idx = 20; // copied into segment 3
    const [segment, position] = await placeOf(log, idx);
    expect(segment).toBe(2);
    const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, toPriority9);
    const { fault } = await verified(log, journal);
    expect(fault).toMatchObject({ kind: "changed", idx });
    expect(fault?.differences).toEqual([{ path: expect.stringMatching(/kind$/), was: "k", is: "K" }]);
  });

  it("cannot be told from the written one if only the newest batch was changed", async () => {
    const log = await aLongLog();
    const [segment, position] = await placeOf(log, log.tail.idx);
    const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, toPriority9);
    const found = await verified(log, journal);
    expect(found.fault).toBeUndefined();
    expect(found.tail.hash).not.toBe(log.tail.hash); // a signed head shows it
  });

  it("names a batch that is gone, and a record that is no batch any more", async () => {
    const log = await aLongLog();
    const [segment, position] = await placeOf(log, 14);
    const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, () => "foreign");
    const { fault } = await verified(log, journal);
    expect(fault).toMatchObject({ kind: "missing", segment, idx: 14 });
    expect(fault?.text).toBe("batch 14 is missing before batch 15, or can no longer be decoded");
  });

  it("names a changed batch with a hash that fits the successor", async () => {
    const log = await aLongLog();
    const [segment, position] = await placeOf(log, 14);
    const journal = new Tampered(new MemoryJournal(log.store)).change(segment, position, (text) =>
      text.replace(/"prev":"[^"]+"/, '"prev":"other"'),
    );
    expect((await verified(log, journal)).fault).toMatchObject({ kind: "changed", idx: 14 });
  });

  it("names a base that is not the state before", async () => {
    const log = await aCompactedLog();
    const { base } = log.live.opened;
    const position = base?.position ?? expect.fail("the third segment has a base");
    const journal = new Tampered(new MemoryJournal(log.store)).change(3, position - 1, (text) =>
      text.replace("t1", "T1"),
    );
    expect((await verified(log, journal)).fault).toMatchObject({ kind: "base", segment: 3 });
  });

  it("names a segment with a writer different from the claim", async () => {
    const log = await aLongLog();
    const journal = new Tampered(new MemoryJournal(log.store)).change(2, 1, (text) =>
      text.replace("session-1", "session-2"),
    );
    expect((await verified(log, journal)).fault).toMatchObject({
      kind: "beginning",
      segment: 2,
    });
  });

  it("goes on at the next base behind a record that cannot be read, and names the lost batches", async () => {
    const log = await aCompactedLog();
    const [segment, position] = await placeOf(log, 15);
    log.store.loseRecords(segment, position);
    const found = await verified(log);
    expect(found).toMatchObject({ tail: log.tail, gaps: [{ from: 15, to: 19, isAdmitted: false }] });
    expect(found.fault).toMatchObject({ kind: "unreadable", segment, position, idx: 15 });
  });

  it("needs no record behind the batch that the next segment continues", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(3);
    const segment = log.journal.segment(1);
    const end = (await segment.end()) ?? expect.fail("it exists");
    for (const at of [0, 1]) await segment.append(noise(30), end.position + at);
    await log.continueIn(2);
    await log.submit(3);
    log.store.loseRecords(1, end.position + 1);
    expect(await verified(log)).toMatchObject({ tail: log.tail, gaps: [], fault: undefined });
    await log.expectWhole();
    expect((await salvage({ journal: log.journal, clock: log.clock })).damage).toBeUndefined();
  });

  it("names batches that no segment holds, if a base holds the state after them", async () => {
    const log = await aCompactedLog();
    const end = (await new MemoryJournal(log.store).segment(2).end()) ?? expect.fail("it exists");
    const [, from] = await placeOf(log, 15);
    const journal = new Tampered(new MemoryJournal(log.store));
    for (let position = from; position <= end.position; position += 1)
      journal.change(2, position, () => "foreign");
    const { fault, gaps } = await verified(log, journal);
    expect(fault).toBeUndefined();
    expect(gaps).toEqual([{ from: 15, to: 19, isAdmitted: false }]);
  });
});
