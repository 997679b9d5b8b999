// The newest batches in memory: uncommitted batches are dropped, and memory is used again.

import { expect, it } from "vitest";
import { RecentBatches } from "../../src/journal/recent-batches.ts";
import { limits } from "../../src/limits.ts";

const bytesOf = (text: string) => Buffer.from(text);

it("batches that were never committed are dropped, and others take their indices", () => {
  const recent = new RecentBatches();
  for (let idx = 4; idx <= 7; idx += 1) recent.add(idx, bytesOf(`old ${idx}`), 0);
  recent.dropBehind(5);
  expect([recent.at(5), recent.at(6), recent.bytes]).toEqual([bytesOf("old 5"), undefined, 10]);
  recent.add(6, bytesOf("new 6"), 0);
  expect([4, 5, 6].map((idx) => recent.at(idx)?.toString())).toEqual(["old 4", "old 5", "new 6"]);
  recent.dropBehind(1);
  expect([recent.at(4), recent.bytes]).toEqual([undefined, 0]);
});

it("old batches make room for new batches, and a batch that was read stays as it was", () => {
  const recent = new RecentBatches();
  const bytes = 100_000;
  const count = 3 * Math.ceil(limits.recentRecordsBytes / bytes);
  const kept = Math.floor(limits.recentRecordsBytes / bytes);
  const contentOf = (idx: number) => Buffer.alloc(bytes, idx % 251);
  recent.add(1, contentOf(1), 0);
  const early = recent.at(1);
  for (let idx = 2; idx <= count; idx += 1) {
    recent.add(idx, contentOf(idx), 0);
    expect(recent.bytes).toBeLessThanOrEqual(limits.recentRecordsBytes);
  }
  expect(recent.firstIdx).toBe(count - kept + 1);
  expect([recent.at(count - kept), recent.at(count + 1)]).toEqual([undefined, undefined]);
  for (let idx = recent.firstIdx; idx <= count; idx += 1)
    expect(contentOf(idx).equals(recent.at(idx) ?? Buffer.alloc(0)), `batch ${idx}`).toBe(true);
  expect(contentOf(1).equals(early ?? Buffer.alloc(0))).toBe(true);
});

it("a batch larger than a block is kept whole, between batches of other sizes", () => {
  const recent = new RecentBatches();
  const sizes = [10, 3 * limits.recentBlockBytes, 0, limits.recentBlockBytes, 7];
  for (const [at, size] of sizes.entries()) recent.add(at + 1, Buffer.alloc(size, at + 1), 0);
  for (const [at, size] of sizes.entries())
    expect(Buffer.alloc(size, at + 1).equals(recent.at(at + 1) ?? Buffer.alloc(1)), `batch ${at + 1}`).toBe(
      true,
    );
});

it("memory of dropped batches is used again", () => {
  const recent = new RecentBatches();
  const batch = Buffer.alloc(100_000, 1);
  let idx = 1;
  const fill = (batches: number) => {
    for (const end = idx + batches; idx < end; idx += 1) recent.add(idx, batch, 0);
  };
  const whole = Math.ceil(limits.recentRecordsBytes / batch.length);
  fill(whole);
  const before = process.memoryUsage().arrayBuffers;
  fill(5 * whole);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * limits.recentBlockBytes);
});
