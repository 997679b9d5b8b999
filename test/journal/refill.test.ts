// Putting back what a journal lost of its end: byte for byte, by several at once, and not onto what went on
// differently.

import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { Endurance, lossEndurance } from "../../src/endurance.ts";
import { UnreachableError } from "../../src/errors.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { type MemoryJournalFaults, MemoryJournalStore } from "../../src/journal/memory.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { isSameLine, refill } from "../../src/journal/refill.ts";
import { limits } from "../../src/limits.ts";

const aMiss = () => lossEndurance(systemClock, limits.readBackPatienceMs, true);
const putBack = (journal: Journal, held: RecentRecords, miss = aMiss()) =>
  refill(journal, held, held.lastSeq, miss);

let store: MemoryJournalStore;
let recent: RecentRecords;

beforeEach(() => {
  store = new MemoryJournalStore();
  recent = new RecentRecords();
  for (const text of ["a", "b", "c", "d", "e"]) store.insertRival(Buffer.from(text));
  for (const seq of [2, 3, 4, 5]) recent.add(recordAt(seq), 0);
});

function recordAt(seq: number) {
  return store.at(seq) ?? expect.fail(`record ${seq} is there`);
}

const texts = () =>
  Array.from({ length: store.lastSeq }, (_, at) => Buffer.from(recordAt(at + 1).bytes).toString()).join("");

describe("a journal that lost its end", () => {
  it("is whole when nothing is missing, or when it went on", async () => {
    expect(await putBack(store.open(), recent)).toEqual({ kind: "whole", lastSeq: 5 });
    store.insertRival(Buffer.from("f"));
    expect(await putBack(store.open(), recent)).toEqual({ kind: "whole", lastSeq: 6 });
    expect(texts()).toBe("abcdef");
  });

  it("has it again", async () => {
    store.loseTail(3);
    expect(await putBack(store.open(), recent)).toEqual({ kind: "refilled", records: 3 });
    expect(texts()).toBe("abcde");
  });

  it("has it once, though several put it back at the same time", async () => {
    store.loseTail(3);
    const all = await Promise.all([1, 2, 3].map(() => putBack(store.open(), recent)));
    expect(all.every(({ kind }) => kind === "refilled" || kind === "whole")).toBe(true);
    expect(texts()).toBe("abcde");
  });

  it("may have lost all of it", async () => {
    const all = new RecentRecords();
    for (const seq of [1, 2, 3, 4, 5]) all.add(recordAt(seq), 0);
    store.loseTail(5);
    expect(await putBack(store.open(), recent)).toEqual({ kind: "not-held", lastSeq: 0 });
    expect(store.lastSeq).toBe(0);
    expect(await putBack(store.open(), all)).toEqual({ kind: "refilled", records: 5 });
    expect(texts()).toBe("abcde");
  });

  it("stays as it is where what is missing is held no more", async () => {
    store.loseTail(4);
    expect(await putBack(store.open(), recent)).toEqual({ kind: "not-held", lastSeq: 1 });
    expect(texts()).toBe("a");
  });

  it("stays as it is where it went on differently", async () => {
    store.loseTail(3);
    store.insertRival(Buffer.from("x"));
    await expect(putBack(store.open(), recent)).rejects.toThrow(/record 3 is not what stood there/);
    expect(texts()).toBe("abx");
  });

  it("stays as it is where what stands at its end is not found, until that has been so for long", async () => {
    store.loseTail(2);
    store.loseMiddle(3, 1);
    expect(await putBack(store.open(), recent, new Endurance(systemClock, 60_000))).toMatchObject({
      kind: "unfinished",
    });
    expect(store.lastSeq).toBe(3);
    const patient = new Endurance(systemClock, 0);
    expect(await putBack(store.open(), recent, patient)).toEqual({ kind: "refilled", records: 2 });
  });

  it("stays as it is where it ends with what everybody skips, and another wrote a batch before that", async () => {
    const dead = Buffer.from("of nobody"); // the same each time
    store.insertRival(dead);
    store.insertRival(dead);
    for (const seq of [6, 7]) recent.add(recordAt(seq), 0, { isDead: true });
    store.loseTail(5);
    for (const bytes of [Buffer.from("x"), dead, dead, dead]) store.insertRival(bytes);
    await expect(putBack(store.open(), recent)).rejects.toThrow(/record 5 is not what stood there/);
    expect(store.lastSeq).toBe(6);
  });

  it("stays as it is where nothing is held that shows whose end is left", async () => {
    const dead = Buffer.from("of nobody");
    const held = new RecentRecords();
    for (let seq = 6; seq <= 8; seq += 1) {
      store.insertRival(dead);
      held.add(recordAt(seq), 0, { isDead: true });
    }
    store.loseTail(2);
    expect(await putBack(store.open(), held)).toEqual({ kind: "not-held", lastSeq: 6 });
    expect(store.lastSeq).toBe(6);
  });

  it("is found out to go on differently while it is put back", async () => {
    store.loseTail(3);
    const faults: MemoryJournalFaults = {
      onRequest: ({ expectedSeq }) => {
        if (expectedSeq === 3) store.insertRival(Buffer.from("x"));
        return "deliver";
      },
    };
    await expect(putBack(store.open(faults), recent)).rejects.toThrow(/record 4 is not what stood there/);
    expect(texts()).toBe("abcx");
  });

  it("has a part of it where an append fails, and the rest the next time", async () => {
    store.loseTail(3);
    const journal = store.open({ onRequest: ({ expectedSeq }) => (expectedSeq === 3 ? "lose" : "deliver") });
    expect(await putBack(journal, recent)).toMatchObject({ kind: "unfinished" });
    expect(texts()).toBe("abc");
    expect(await putBack(store.open(), recent)).toEqual({ kind: "refilled", records: 2 });
    expect(texts()).toBe("abcde");
  });
});

describe("the line behind which somebody campaigns", () => {
  const find = (miss = aMiss()) => isSameLine(store.open(), recent, 5, miss);

  it("is the one that was read where each of its records is found", async () => {
    expect(await find()).toBe(true);
  });

  it("is another one where another record stands", async () => {
    store.loseTail(1);
    store.insertRival(Buffer.from("x"));
    await expect(find()).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });

  it("may be another one where none is found, until that has been so for long", async () => {
    store.loseMiddle(5, 1);
    expect(await find(new Endurance(systemClock, 60_000))).toBe(false);
    expect(await find(new Endurance(systemClock, 0))).toBe(true);
  });

  it("…and time in which nobody answers does not count", async () => {
    store.loseMiddle(5, 1);
    let now = 0;
    const miss = new Endurance({ monotonicMs: () => now }, 5_000);
    const silent = Object.assign(store.open(), {
      read: () => Promise.reject(new UnreachableError("nobody")),
    });
    expect(await find(miss)).toBe(false);
    now = 4_000;
    await expect(isSameLine(silent, recent, 5, miss)).rejects.toThrow("nobody");
    now = 8_000;
    expect(await find(miss)).toBe(false);
    now = 13_000;
    expect(await find(miss)).toBe(true);
  });

  it("is it where it was purged", async () => {
    store.purgeBelow(6);
    expect(await find()).toBe(true);
  });
});
