// What is kept of a journal's newest records, and for how long.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { limits } from "../../src/limits.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const aRecord = (seq: number, text = `record ${seq}`) => ({ seq, bytes: Buffer.from(text) });

function kept(recent: RecentRecords): number[] {
  return Array.from({ length: recent.lastSeq }, (_, at) => at + 1).filter((seq) => recent.at(seq));
}

/** 25 MiB, which no variable holds afterwards. */
function addMany(recent: RecentRecords): void {
  for (let seq = 1; seq <= 100; seq += 1) recent.add({ seq, bytes: Buffer.alloc(256 * 1024) }, 0);
}

describe("recent records", () => {
  it("are none at first", () => {
    const recent = new RecentRecords();
    expect([recent.lastSeq, recent.at(0), recent.at(1)]).toEqual([0, undefined, undefined]);
  });

  it("are kept for so long, the last one for good", () => {
    const recent = new RecentRecords();
    recent.add(aRecord(1), 0);
    recent.add(aRecord(2), 1_000);
    recent.add(aRecord(3), limits.recentRecordsMs);
    expect(kept(recent)).toEqual([1, 2, 3]);
    recent.add(aRecord(4), limits.recentRecordsMs + 1);
    expect(kept(recent)).toEqual([2, 3, 4]);
    recent.add(aRecord(5), 10 * limits.recentRecordsMs);
    expect(kept(recent)).toEqual([5]);
    expect(recent.bytes).toBe(aRecord(5).bytes.length);
  });

  it("take no memory once they are not kept any more", async () => {
    const recent = new RecentRecords();
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    addMany(recent);
    recent.add(aRecord(101), limits.recentRecordsMs + 1);
    expect(recent.bytes).toBe(aRecord(101).bytes.length);
    const takenBytes = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    };
    await expect.poll(takenBytes, { timeout: 20_000 }).toBeLessThan(5 * 1024 * 1024);
  });

  it("are kept up to so many bytes", () => {
    const recent = new RecentRecords();
    const bytes = Buffer.alloc(1024 * 1024);
    for (let seq = 1; seq <= 100; seq += 1) recent.add({ seq, bytes }, 0);
    expect(recent.bytes).toBe(limits.recentRecordsBytes);
    expect(recent.at(100 - 64)).toBeUndefined();
    expect(recent.at(100 - 63)?.bytes === bytes).toBe(true);
  });

  it("are found from the newest on, and forgotten behind one", () => {
    const recent = new RecentRecords();
    for (const seq of [5, 6, 7]) recent.add(aRecord(seq), 0);
    expect(recent.findLast(({ seq }) => seq < 7)?.seq).toBe(6);
    expect(recent.findLast(({ seq }) => seq < 5)).toBeUndefined();
    recent.forgetBehind(5);
    expect(kept(recent)).toEqual([5]);
    expect(recent.bytes).toBe(aRecord(5).bytes.length);
    recent.add(aRecord(6, "another"), 1);
    expect(kept(recent)).toEqual([5, 6]);
  });

  it("are none any more where what they stood behind is gone, too", () => {
    const recent = new RecentRecords();
    for (const seq of [7, 8]) recent.add(aRecord(seq), 0);
    recent.forgetBehind(3);
    expect([recent.firstSeq, recent.lastSeq, recent.bytes]).toEqual([4, 3, 0]);
    recent.add(aRecord(4), 0);
    expect(kept(recent)).toEqual([4]);
  });

  it("stay when they are read again, and go when others stand in their place", () => {
    const recent = new RecentRecords();
    for (const seq of [5, 6, 7]) recent.add(aRecord(seq), 0);
    recent.add(aRecord(5), 1);
    expect(kept(recent)).toEqual([5, 6, 7]);
    recent.add(aRecord(6, "another"), 1);
    expect(kept(recent)).toEqual([5, 6]);
    recent.add(aRecord(5, "another"), 1);
    expect(kept(recent)).toEqual([5]);
    recent.add(aRecord(9), 1);
    expect(kept(recent)).toEqual([9]);
    expect(recent.bytes).toBe(aRecord(9).bytes.length);
  });

  it("are live or dead, as they were read last", () => {
    const recent = new RecentRecords();
    expect(recent.lastLiveSeq).toBe(0);
    for (const seq of [5, 6, 7]) recent.add(aRecord(seq), 0, { isDead: seq > 5 });
    expect(recent.lastLiveSeq).toBe(5);
    recent.add(aRecord(6), 1);
    expect(recent.lastLiveSeq).toBe(6);
  });

  it("can be put back behind the oldest that is live", () => {
    const recent = new RecentRecords();
    for (const seq of [5, 6]) recent.add(aRecord(seq), 0, { isDead: true });
    expect(recent.heldFromSeq(6)).toBe(Number.POSITIVE_INFINITY);
    for (const seq of [7, 8]) recent.add(aRecord(seq), 0);
    expect([recent.heldFromSeq(8), recent.heldFromSeq(9)]).toEqual([7, Number.POSITIVE_INFINITY]);
    recent.add(aRecord(9), limits.recentRecordsMs + 1); // the others are too old now
    expect(recent.heldFromSeq(9)).toBe(9);
  });
});
