// How much of a journal is kept: by age, by bytes, the less of both, and never less than two snapshots stand behind.

import { describe, expect, it } from "vitest";
import { instant, taskId } from "../../../src/ids.ts";
import { keptBytesMax, roomToKeep } from "../../../src/journal/kept-room.ts";
import { StoredHistory } from "../../support/stored-history.ts";
import { aTask, submit, Turns } from "../../support/turns.ts";

const forever = Number.POSITIVE_INFINITY;

/** 40 batches of a task each, a second apart, with snapshots at 20 and 30. */
async function aHistory() {
  const turns = new Turns();
  while (turns.records.length < 40) {
    turns.pass(1_000);
    turns.turn(submit(aTask({ id: taskId(`t${turns.records.length}`) })));
  }
  const stored = new StoredHistory(turns.records);
  await stored.snapshot(20);
  return stored;
}

async function trimmed(stored: StoredHistory, order: Parameters<StoredHistory["make"]>[1]) {
  return (await stored.make(30, order)).trim;
}

describe("what may go from a journal", () => {
  it("is what is older than was to be kept", async () => {
    const stored = await aHistory();
    const now = instant(stored.whole.state.at);
    const trim = await trimmed(stored, { retention: { ageMs: 30_000, bytes: forever }, now });
    expect(trim).toEqual({ firstIdx: 10, reason: "retention" });
  });

  it("is what is more than was to be kept", async () => {
    const stored = await aHistory();
    const sizes = Array.from({ length: 40 }, (_, at) => stored.journal.at(at + 1)?.bytes.length ?? 0);
    const journalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const bytes = sizes.slice(12).reduce((sum, size) => sum + size, 0);
    const trim = await trimmed(stored, { retention: { ageMs: forever, bytes }, journalBytes });
    expect(trim).toEqual({ firstIdx: 13, reason: "retention" });
  });

  it("is what either lets go, up to the older of the last two snapshots", async () => {
    const stored = await aHistory();
    const now = instant(stored.whole.state.at + 1_000_000);
    const trim = await trimmed(stored, { retention: { ageMs: 30_000, bytes: forever }, now });
    expect(trim).toEqual({ firstIdx: 21, reason: "retention" });
  });

  it("is what is more than the journal has room for beside what comes, and no more than that", async () => {
    const stored = await aHistory();
    const sizes = Array.from({ length: 40 }, (_, at) => stored.journal.at(at + 1)?.bytes.length ?? 0);
    const journalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const kept = sizes.slice(12).reduce((sum, size) => sum + size, 0);
    const bytesMax = roomToKeep(kept);
    expect(Math.abs(keptBytesMax(bytesMax) - kept)).toBeLessThanOrEqual(2);
    for (const isShort of [false, true])
      for (const bytes of [forever, kept + 10])
        expect(
          await trimmed(await aHistory(), {
            retention: { ageMs: forever, bytes },
            journalBytes,
            journalBytesMax: bytesMax,
            isShort,
          }),
        ).toEqual({ firstIdx: 13, reason: "storage-short" });
    const asked = {
      retention: { ageMs: forever, bytes: kept - 10 },
      journalBytes,
      journalBytesMax: bytesMax,
    };
    expect(await trimmed(stored, asked)).toEqual({ firstIdx: 14, reason: "retention" });
  });

  it("is more where more came since the snapshot before than is left free for it", async () => {
    const stored = await aHistory();
    const sizes = Array.from({ length: 40 }, (_, at) => stored.journal.at(at + 1)?.bytes.length ?? 0);
    const journalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const bytesMax = roomToKeep(journalBytes);
    const firstIdxWhere = async (cameBytes: number) =>
      (await trimmed(await aHistory(), { journalBytes, journalBytesMax: bytesMax, cameBytes }))?.firstIdx;
    expect(await firstIdxWhere(bytesMax / 8)).toBeUndefined();
    expect(await firstIdxWhere(bytesMax / 6)).toBeGreaterThan(2);
    expect(await firstIdxWhere(bytesMax / 6)).toBeLessThan(21);
    expect(await firstIdxWhere(bytesMax)).toBe(21);
  });

  it("is all before the older snapshot where less room is there than the journal's bound says", async () => {
    for (const journalBytesMax of [undefined, 1_000_000])
      expect(await trimmed(await aHistory(), { isShort: true, journalBytesMax })).toEqual({
        firstIdx: 21,
        reason: "storage-short",
      });
  });

  it("is nothing where all is to be kept, where there is one snapshot, and where it is gone already", async () => {
    expect(await trimmed(await aHistory(), {})).toBeUndefined();
    const one = await aHistory();
    expect((await one.make(20, { isShort: true })).trim).toBeUndefined();
    const gone = await aHistory();
    await gone.make(30);
    gone.journal.purgeBelow(21);
    expect((await gone.make(30, { isShort: true })).trim).toBeUndefined();
  });
});
