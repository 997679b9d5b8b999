// The journal in memory: the conformance suite, and the faults for simulations.

import { describe, expect, it } from "vitest";
import { InvariantError, JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import {
  MemoryJournal,
  type MemoryJournalFaults,
  type MemoryRequest,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, filled, linesOf } from "./records.ts";

describeJournal("memory", async (options) => {
  const store = new MemoryJournalStore(options);
  return {
    open: async () => new MemoryJournal(store),
    cutOff: async (journal) => {
      (journal as MemoryJournal).setOffline(true);
      return async () => (journal as MemoryJournal).setOffline(false);
    },
    dispose: async () => undefined,
  };
});

/** A store with segment 1, and a handle with `faults`. */
function aWorld(faults: MemoryJournalFaults = {}) {
  const clock = new ManualClock();
  const store = new MemoryJournalStore({ clock });
  store.create(1);
  const journal = new MemoryJournal(store, faults);
  return { clock, store, journal, segment: journal.segment(1) };
}

describe("the connection of a handle in memory", () => {
  it("loses a request: unknown, and nothing is done", async () => {
    const { store, journal, segment } = aWorld({ onRequest: () => "lose" });
    expect(await segment.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
    await expect(segment.seal()).rejects.toThrow(UnreachableError);
    await expect(journal.create(2)).rejects.toThrow(UnreachableError);
    await expect(journal.remove(1)).rejects.toThrow(UnreachableError);
    expect(store.list()).toEqual([1]);
    expect(store.end(1)).toEqual({ position: 0, bytes: 0, isSealed: false, missing: 0 });
  });

  it("loses an answer: unknown, and everything is done", async () => {
    const { store, journal, segment } = aWorld({ onAnswer: () => "lose" });
    expect(await segment.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
    await expect(segment.seal()).rejects.toThrow(UnreachableError);
    await expect(journal.create(2)).rejects.toThrow(UnreachableError);
    expect(store.list()).toEqual([1, 2]);
    expect(store.end(1)).toEqual({ position: 1, bytes: 1, isSealed: true, missing: 0 });
    await expect(journal.remove(1)).rejects.toThrow(UnreachableError);
    expect(store.list()).toEqual([2]);
  });

  it("delivers late: unknown now, stored when the test says so", async () => {
    const gate = new Gate();
    const { store, segment } = aWorld({ onRequest: () => ({ kind: "late", until: gate.opened }) });
    const follower = new Follower(new MemoryJournal(store).segment(1));
    expect(await segment.append(bytesOf("late"), 0)).toMatchObject({ kind: "unknown" });
    expect(store.end(1)?.position).toBe(0);
    gate.open();
    await follower.hasRead(1);
    await follower.stop();
    expect(follower.lines).toEqual(["1:late"]);
  });

  it("delivers a late creation after the segment was removed", async () => {
    const gate = new Gate();
    const { store, journal } = aWorld({
      onRequest: ({ op }) => (op === "create" ? { kind: "late", until: gate.opened } : "deliver"),
    });
    await expect(journal.create(1)).rejects.toThrow(UnreachableError);
    await journal.remove(1);
    expect(store.list()).toEqual([]);
    const created = store.changes.wait();
    gate.open();
    await created;
    expect(store.list()).toEqual([1]);
  });

  it("holds writes in the order of the calls, while reads overtake them", async () => {
    const gate = new Gate();
    const { store, segment } = aWorld({
      onRequest: async ({ op }): Promise<RequestFate> => {
        if (op === "append") await gate.opened;
        return "deliver";
      },
    });
    const outcomes = Promise.all([segment.append(bytesOf("a"), 0), segment.append(bytesOf("b"), 1)]);
    const sealing = segment.seal();
    expect((await segment.end())?.position).toBe(0);
    expect(store.insert(1, bytesOf("rival"))).toBe(1);
    gate.open();
    expect(await outcomes).toEqual([{ kind: "refused" }, { kind: "stored" }]);
    expect(await sealing).toBe(true);
    expect(store.end(1)).toMatchObject({ position: 2, isSealed: true });
  });

  it("ends every call under way when the handle is closed", async () => {
    const gate = new Gate();
    const { store, journal, segment } = aWorld({ onRequest: () => gate.opened.then(() => "deliver") });
    const appending = segment.append(bytesOf("a"), 0);
    const listing = journal.list();
    await journal.close();
    expect(await appending).toMatchObject({ kind: "unknown", cause: { code: "WAGGLE_UNREACHABLE" } });
    await expect(listing).rejects.toThrow("this journal was closed");
    gate.open();
    await expect(segment.seal()).rejects.toThrow(UnreachableError);
    expect(store.end(1)?.position).toBe(0);
  });

  it("shows each request to its hooks", async () => {
    const requests: MemoryRequest[] = [];
    const { journal, segment } = aWorld({
      onRequest: (request) => {
        requests.push(request);
        return "deliver";
      },
    });
    await journal.list();
    await segment.append(bytesOf("a"), 0, { isOpened: true });
    await segment.read(1);
    await linesOf(segment.replay(1));
    expect(requests).toEqual([
      { op: "list" },
      { op: "append", segment: 1, bytes: bytesOf("a"), expected: 0, isOpened: true },
      { op: "read", segment: 1 },
      { op: "replay", segment: 1 },
    ]);
  });

  it("is lost with a request and an answer while the handle is offline", async () => {
    const { store, journal, segment } = aWorld();
    await fill(segment, 2);
    let reconnections = 0;
    const stop = journal.onReconnected(() => {
      reconnections += 1;
    });
    journal.setOffline(true);
    expect(await segment.append(bytesOf("a"), 2)).toMatchObject({ kind: "unknown" });
    await expect(segment.seal()).rejects.toThrow(UnreachableError);
    await expect(segment.end()).rejects.toThrow(UnreachableError);
    await expect(linesOf(segment.replay(1))).rejects.toThrow(UnreachableError);
    expect(store.end(1)).toMatchObject({ position: 2, isSealed: false });
    journal.setOffline(false);
    journal.setOffline(false);
    expect(reconnections).toBe(1);
    stop();
    journal.setOffline(true);
    journal.setOffline(false);
    expect(reconnections).toBe(1);
    await fill(segment, 3, 3);
  });

  it("loses the answer of an append that was stored when the handle goes offline", async () => {
    const { store, journal, segment } = aWorld({
      onAnswer: () => {
        journal.setOffline(true);
        return "deliver";
      },
    });
    expect(await segment.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
    expect(store.end(1)?.position).toBe(1);
  });
});

describe("the store in memory", () => {
  it("is full at its bound, and has room again when a segment is removed", async () => {
    const { store, journal, segment } = aWorld();
    store.bytesMax = 10;
    expect(await segment.append(bytesOf("12345678"), 0)).toEqual({ kind: "stored" });
    expect(await segment.append(bytesOf("abc"), 1)).toMatchObject({ kind: "full" });
    expect(await segment.append(bytesOf("ab"), 1)).toEqual({ kind: "stored" });
    expect(await journal.usage()).toEqual({ bytes: 10, bytesMax: 10 });
    await expect(journal.create(2)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
    await journal.remove(1);
    await journal.create(2);
    expect(await journal.usage()).toEqual({ bytes: 0, bytesMax: 10 });
  });

  it("keeps the bytes that were appended when the writer's buffer changes", async () => {
    const { segment } = aWorld();
    const bytes = bytesOf("abc");
    const appending = segment.append(bytes, 0);
    bytes.fill(0);
    await appending;
    expect(await linesOf(segment.replay(1))).toEqual(["1:abc"]);
  });

  it("loses the end of a segment, whose positions are then free again", async () => {
    const { store, segment } = aWorld();
    await fill(segment, 5);
    store.loseTail(1, 2);
    expect(await segment.end()).toEqual({ position: 3, bytes: 24, isSealed: false, missing: 0 });
    expect(await segment.append(bytesOf("other"), 3)).toEqual({ kind: "stored" });
    store.loseTail(1, 100);
    expect(store.end(1)).toEqual({ position: 0, bytes: 0, isSealed: false, missing: 0 });
  });

  it("lets a follower continue if lost records are appended again in time, and throws otherwise", async () => {
    const { clock, store, segment } = aWorld();
    await fill(segment, 5);
    const follower = new Follower(segment);
    await follower.hasRead(5);
    store.loseTail(1, 2);
    await clock.advance(limits.journalGapMs - 1);
    await fill(segment, 6, 4);
    await follower.hasRead(6);
    store.loseTail(1, 2);
    await clock.advance(limits.journalGapMs);
    await expect(follower.ended).rejects.toThrow("segment 1 ends at record 4, before the expected record 6");
    await expect(follower.ended).rejects.toThrow(JournalDamagedError);
  });

  it("lets a follower wait the whole time again at a second fault", async () => {
    const { clock, store, segment } = aWorld();
    await fill(segment, 2);
    const follower = new Follower(segment);
    await follower.hasRead(2);
    store.loseTail(1, 1);
    await clock.advance(limits.journalGapMs - 1);
    await fill(segment, 2, 2);
    await clock.advance(0);
    store.loseTail(1, 1);
    await clock.advance(limits.journalGapMs - 1);
    await fill(segment, 3, 2);
    await follower.hasRead(3);
    await follower.stop();
  });

  it("does not count the time offline against a segment that is too short", async () => {
    const { clock, store, journal, segment } = aWorld();
    await fill(segment, 2);
    const follower = new Follower(segment);
    await follower.hasRead(2);
    store.loseTail(1, 1);
    journal.setOffline(true);
    await clock.advance(2 * limits.journalGapMs);
    journal.setOffline(false);
    store.insert(1, bytesOf("record 2"));
    await fill(segment, 3, 3);
    await follower.hasRead(3);
    await follower.stop();
  });

  it("loses a seal, and takes appends again", async () => {
    const { store, segment } = aWorld();
    await segment.seal();
    store.loseSeal(1);
    expect(await segment.end()).toMatchObject({ isSealed: false });
    await fill(segment, 1);
  });

  it("loses a segment that was created", async () => {
    const { store, journal, segment } = aWorld();
    await fill(segment, 2);
    store.loseSegment(1);
    expect(await journal.list()).toEqual([]);
    expect(await segment.append(bytesOf("a"), 2)).toEqual({ kind: "missing" });
    expect(await journal.usage()).toMatchObject({ bytes: 0 });
    expect(() => store.loseSegment(1)).toThrow(InvariantError);
  });

  it("loses records in the middle under an unchanged end, which readers notice", async () => {
    const { clock, store, segment } = aWorld();
    await fill(segment, 9);
    store.loseRecords(1, 5, 2);
    expect(await segment.end()).toMatchObject({ position: 9, bytes: 7 * 8, missing: 2 });
    expect(await segment.read(5)).toBeUndefined();
    await expect(linesOf(segment.replay(1))).rejects.toThrow("record 5 of segment 1 is missing");
    expect(await linesOf(segment.replay(7))).toEqual(filled(7, 9));
    const follower = new Follower(segment, 4);
    await follower.hasRead(1);
    await clock.advance(limits.journalGapMs);
    await expect(follower.ended).rejects.toThrow(
      "record 5 of segment 1 is missing, and the segment ends at 9",
    );
    await fill(segment, 10, 10);
    store.loseTail(1, 4);
    expect(store.end(1)).toMatchObject({ position: 4, missing: 0 });
  });

  it("counts the first record as missing when it is lost", async () => {
    const { store, segment } = aWorld();
    await fill(segment, 3);
    store.loseRecords(1, 1);
    expect(await segment.end()).toMatchObject({ position: 3, missing: 1 });
    await expect(linesOf(segment.replay(1))).rejects.toThrow("record 1 of segment 1 is missing");
  });

  it("damages a record: unreadable, but not counted as missing", async () => {
    const { store, segment } = aWorld();
    await segment.append(bytesOf("opened"), 0, { isOpened: true });
    await fill(segment, 3, 2);
    store.damageRecord(1, 1);
    expect(await segment.end()).toMatchObject({ position: 3, missing: 0 });
    for (const reading of [
      segment.read(1),
      segment.opened(),
      linesOf(segment.replay(1)),
      new Follower(segment).ended,
    ])
      await expect(reading).rejects.toThrow("record 1 of segment 1 cannot be read");
    expect(await linesOf(segment.replay(2))).toEqual(filled(2, 3));
  });

  it("finds the earlier opened record if the last opened record is lost", async () => {
    const { store, segment } = aWorld();
    await segment.append(bytesOf("first"), 0, { isOpened: true });
    await segment.append(bytesOf("second"), 1, { isOpened: true });
    store.loseTail(1, 1);
    expect(await segment.opened()).toEqual({ position: 1, bytes: bytesOf("first") });
  });

  it("takes a foreign record, marked as opened or not", async () => {
    const { store, segment } = aWorld();
    await fill(segment, 1);
    expect(store.insert(1, bytesOf("foreign"))).toBe(2);
    expect(await segment.append(bytesOf("record 2"), 1)).toEqual({ kind: "refused" });
    expect(store.insert(1, bytesOf("foreign"), true)).toBe(3);
    expect((await segment.opened())?.position).toBe(3);
    await segment.seal();
    expect(() => store.insert(1, bytesOf("foreign"))).toThrow(InvariantError);
  });
});
