// The journal in memory: the conformance suite, and the faults that simulations are made of.

import { describe, expect, it } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { type MemoryJournalFaults, MemoryJournalStore } from "../../src/journal/memory.ts";
import { Gate } from "../support/gate.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, tell, toldOf } from "./records.ts";

describeJournal("memory", async () => {
  const store = new MemoryJournalStore();
  return { open: async () => store.open(), dispose: async () => undefined };
});

describe("the journal in memory, under faults", () => {
  it("loses a request: unknown, and nothing stored", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open({ onRequest: () => "lose" });
    expect(await journal.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
    expect(store.lastSeq).toBe(0);
  });

  it("loses an answer: unknown, and stored", async () => {
    const store = new MemoryJournalStore();
    const faults: MemoryJournalFaults = { onAnswer: () => "lose" };
    const journal = store.open(faults);
    expect(await journal.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
    expect(await tell(journal.replay(1))).toEqual(["1:a"]);
    expect(await store.open().append(bytesOf("a"), 0)).toEqual({ kind: "refused" });
  });

  it("delivers late: unknown now, stored when the test says so", async () => {
    const store = new MemoryJournalStore();
    const gate = new Gate();
    const journal = store.open({ onRequest: () => ({ kind: "late", until: gate.opened }) });
    const follower = new Follower(store.open());
    expect(await journal.append(bytesOf("zombie"), 0)).toMatchObject({ kind: "unknown" });
    expect(store.lastSeq).toBe(0);
    gate.open();
    await follower.hasRead(1);
    await follower.stop();
    expect(follower.lines).toEqual(["1:zombie"]);
  });

  it("answers full without storing", async () => {
    const journal = new MemoryJournalStore().open({
      onRequest: () => ({ kind: "full", message: "no room" }),
    });
    expect(await journal.append(bytesOf("a"), 0)).toEqual({ kind: "full", message: "no room" });
    expect(await journal.position()).toEqual({ firstSeq: 0, lastSeq: 0, missing: 0 });
  });

  it("holds two appends under way while a rival takes the first one's place", async () => {
    const store = new MemoryJournalStore();
    const gate = new Gate();
    const journal = store.open({ onRequest: () => gate.opened.then(() => "deliver") });
    const outcomes = Promise.all([journal.append(bytesOf("a"), 0), journal.append(bytesOf("b"), 1)]);
    expect(store.insertRival(bytesOf("rival"))).toBe(1);
    gate.open();
    expect(await outcomes).toEqual([{ kind: "refused" }, { kind: "stored", seq: 2 }]);
  });

  it("is cut off and comes back", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open();
    await fill(journal, 2);
    const follower = new Follower(journal);
    await follower.hasRead(2);
    journal.setCutOff(true);
    await fill(store.open(), 4, 3);
    expect(await journal.append(bytesOf("a"), 4)).toMatchObject({ kind: "unknown" });
    await expect(journal.position()).rejects.toThrow(UnreachableError);
    expect(follower.lines).toEqual(toldOf(1, 2));
    journal.setCutOff(false);
    await follower.hasRead(4);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 4));
  });

  it("is full at its bound, and takes what is small enough", async () => {
    const journal = new MemoryJournalStore({ bytesMax: 10 }).open();
    await journal.append(bytesOf("12345678"), 0);
    expect(await journal.append(bytesOf("abc"), 1)).toMatchObject({ kind: "full" });
    expect(await journal.append(bytesOf("ab"), 1)).toEqual({ kind: "stored", seq: 2 });
    expect(await journal.usage()).toEqual({ bytes: 10, bytesMax: 10 });
  });

  it("keeps what was appended, whatever becomes of the writer's buffer", async () => {
    const journal = new MemoryJournalStore().open();
    const batch = bytesOf("abc");
    await journal.append(batch, 0);
    batch.fill(0);
    expect(await tell(journal.replay(1))).toEqual(["1:abc"]);
  });
});

describe("the journal in memory, after it lost records", () => {
  it("goes on for a follower when the same bytes are appended again", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open();
    await fill(journal, 5);
    const follower = new Follower(journal);
    await follower.hasRead(5);
    store.loseTail(2);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 3, missing: 0 });
    await fill(journal, 6, 4);
    await follower.hasRead(6);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 6));
  });

  it("is damaged for a follower when something else took the place", async () => {
    const store = new MemoryJournalStore();
    await fill(store.open(), 5);
    const follower = new Follower(store.open());
    await follower.hasRead(5);
    store.loseTail(1);
    store.insertRival(bytesOf("other"));
    store.insertRival(bytesOf("more"));
    await expect(follower.ended).rejects.toThrow(JournalDamagedError);
    await expect(follower.ended).rejects.toThrow("record 5 ");
  });

  it("has a hole under an unchanged end, which who reads on to it is told of", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open();
    await fill(journal, 9);
    store.loseMiddle(5, 2);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 9, missing: 2 });
    expect(await journal.read(5)).toBeUndefined();
    await expect(tell(journal.replay(1))).rejects.toThrow("lost record 5 and goes on to 9");
    await expect(new Follower(journal, 6).ended).rejects.toThrow("lost record 6");
    expect(await tell(journal.replay(7))).toEqual(toldOf(7, 9));
    expect(await journal.append(bytesOf("record 10"), 9)).toEqual({ kind: "stored", seq: 10 });
    store.loseTail(5);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 5, missing: 1 });
    store.purgeBelow(5);
    expect(await journal.position()).toEqual({ firstSeq: 6, lastSeq: 5, missing: 0 });
  });

  it("is purged through its last record, and only where it ends there", async () => {
    const journal = new MemoryJournalStore().open();
    await fill(journal, 4);
    expect(await journal.purgeThrough(3)).toBe(false);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 4));
    expect(await journal.purgeThrough(4)).toBe(true);
    expect(await journal.position()).toEqual({ firstSeq: 5, lastSeq: 4, missing: 0 });
    expect(await journal.append(bytesOf("record 5"), 4)).toEqual({ kind: "stored", seq: 5 });
  });

  it("begins later when its first records are lost", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open();
    await fill(journal, 5);
    store.loseMiddle(1, 2);
    expect(await journal.position()).toEqual({ firstSeq: 3, lastSeq: 5, missing: 0 });
    expect(await tell(journal.replay(3))).toEqual(toldOf(3, 5));
  });

  it("cannot be purged by who does not reach it", async () => {
    const journal = new MemoryJournalStore().open();
    await fill(journal, 3);
    journal.setCutOff(true);
    await expect(journal.purgeBelow(2)).rejects.toThrow(UnreachableError);
    journal.setCutOff(false);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 3));
  });

  it("tells who reads from before its first record to use a snapshot", async () => {
    const store = new MemoryJournalStore();
    const journal = store.open();
    await fill(journal, 5);
    store.purgeBelow(4);
    expect(await journal.position()).toEqual({ firstSeq: 4, lastSeq: 5, missing: 0 });
    await expect(tell(journal.replay(2))).rejects.toThrow(/records 2 to 3 .* begins at 4/);
    expect(await tell(journal.replay(4))).toEqual(toldOf(4, 5));
    expect(await journal.read(3)).toBeUndefined();
    store.purgeBelow(6);
    expect(await journal.position()).toEqual({ firstSeq: 6, lastSeq: 5, missing: 0 });
    expect(await journal.append(bytesOf("record 6"), 5)).toEqual({ kind: "stored", seq: 6 });
  });
});
