// What the newest batches were: told of those that are known, and of none that is not.

import { expect, it } from "vitest";
import { batchIndex } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import { BatchHashes } from "../../src/journal/batch-hashes.ts";
import { limits } from "../../src/limits.ts";

const hash = (of: number, line = "a") => hashOf(Buffer.from(`${line} ${of}`));

function hashesOf(...numbers: readonly number[]): BatchHashes {
  const hashes = new BatchHashes();
  for (const idx of numbers) hashes.add(batchIndex(idx), hash(idx));
  return hashes;
}

it("tells a batch from another in its place, and what it does not know from both", () => {
  const hashes = hashesOf(7, 8, 9);
  const asked = [6, 7, 9, 10].map((idx) => hashes.has(batchIndex(idx), hash(idx)));
  expect(asked).toEqual([undefined, true, true, undefined]);
  expect([7, 9].map((idx) => hashes.has(batchIndex(idx), hash(idx, "b")))).toEqual([false, false]);
});

it("knows nothing of what stood before batches that are missing", () => {
  const hashes = hashesOf(7, 8, 20);
  expect([7, 8, 20].map((idx) => hashes.has(batchIndex(idx), hash(idx)))).toEqual([
    undefined,
    undefined,
    true,
  ]);
});

it("knows at least so many of the newest, and less than twice as many", () => {
  const last = 5 * limits.batchHashesMin + 3;
  const hashes = new BatchHashes();
  for (let idx = 1; idx <= last; idx += 1) hashes.add(batchIndex(idx), hash(idx % 100));
  const knows = (idx: number) => hashes.has(batchIndex(idx), hash(idx % 100));
  expect(knows(last - limits.batchHashesMin + 1)).toBe(true);
  expect(knows(last - 2 * limits.batchHashesMin + 1)).toBeUndefined();
});
