// When a batch may find no room in a journal: by the free room, and by the need that the leader announces.

import { describe, expect, it } from "vitest";
import { isFull } from "../../src/coordinator/journal-room.ts";
import { limits } from "../../src/limits.ts";

const small = 100_000;
const large = 1024 ** 3;
const largestBatch = limits.turnBytesMax + limits.batchBytesMax + limits.journalRecordOverheadBytes;
/** The share of a small journal kept free of tasks. */
const kept = Math.round(small * (1 - limits.journalFullShare));

describe("a journal has no room", () => {
  it.each([
    { of: "a small one, where less is free than is kept free", bytesMax: small, free: kept - 1 },
    { of: "a large one, where less is free than the largest batch", bytesMax: large, free: largestBatch - 1 },
    { of: "one with less than its leader needs", bytesMax: small, free: 30_000, needed: 30_000 },
  ])("$of", ({ bytesMax, free, needed }) => {
    expect(isFull({ bytes: bytesMax - free, bytesMax }, needed)).toBe(true);
  });
});

describe("a journal has room", () => {
  it.each([
    { of: "that has no bound", bytesMax: undefined, bytes: large },
    { of: "where as much is free as is kept free", bytesMax: small, bytes: small - kept - 1 },
    { of: "for what its leader needs", bytesMax: small, bytes: small - 31_000, needed: 30_000 },
    {
      of: "for the largest batch, whatever somebody says that it needs",
      bytesMax: large,
      bytes: large - largestBatch,
      needed: 1e12,
    },
  ])("$of", ({ bytes, bytesMax, needed }) => {
    expect(isFull({ bytes, bytesMax }, needed)).toBe(false);
  });
});
