// The newest batches in memory: uncommitted batches are dropped.

import { expect, it } from "vitest";
import { RecentBatches } from "../../src/journal/recent-batches.ts";

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
