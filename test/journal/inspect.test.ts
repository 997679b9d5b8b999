// Each answer to the question whether a segment still holds the last record read or written.

import { beforeEach, expect, it } from "vitest";
import { inspect } from "../../src/journal/inspect.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { hashOf } from "../../src/journal/records.ts";

let store: MemoryJournalStore;
const records = ["one", "two", "three", "four"].map((text) => Buffer.from(text));
const held = { position: 3, recordHash: hashOf(Buffer.from("three")) };

beforeEach(() => {
  store = new MemoryJournalStore();
  store.create(1);
  for (const record of records.slice(0, 3)) store.insert(1, record);
});

const found = async (place = held) => {
  const { found: what, isSealed } = await inspect(new MemoryJournal(store).segment(1), place);
  return `${what}${isSealed ? ", sealed" : ""}`;
};

it.each<[string, () => unknown]>([
  ["same", () => undefined],
  ["same, sealed", () => store.seal(1)],
  ["longer", () => store.insert(1, records[3] as Buffer)],
  ["shorter", () => store.loseTail(1, 1)],
  ["replaced", () => [store.loseTail(1, 1), store.insert(1, Buffer.from("another"))]],
  ["damaged", () => store.loseRecords(1, 2)],
  ["damaged", () => store.damageRecord(1, 3)],
  ["same", () => store.damageRecord(1, 1)],
  ["missing", () => store.loseSegment(1)],
])("%s", async (what, happens) => {
  happens();
  expect(await found()).toBe(what);
});

it("a record without a known hash counts as unchanged if readable", async () => {
  expect(await found({ position: 3, recordHash: "" })).toBe("same");
  expect(await found({ position: 0, recordHash: "" })).toBe("longer");
});

it("throws without an answer of the server", async () => {
  const journal = new MemoryJournal(store);
  journal.setOffline(true);
  await expect(inspect(journal.segment(1), held)).rejects.toMatchObject({ code: "WAGGLE_UNREACHABLE" });
});
