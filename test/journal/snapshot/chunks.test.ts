// Lines cut into chunks and read again are the same lines, wherever the cut falls.

import { describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../../src/errors.ts";
import { ChunkCutter, LineReader } from "../../../src/journal/snapshot/chunks.ts";
import { limits } from "../../../src/limits.ts";

function cut(lines: readonly string[]): Uint8Array[] {
  const cutter = new ChunkCutter();
  return [...lines.flatMap((line) => cutter.add(line)), ...cutter.end()];
}

function read(chunks: readonly Uint8Array[]): string[] {
  const reader = new LineReader();
  const lines = chunks.flatMap((chunk) => reader.take(chunk));
  reader.end();
  return lines;
}

describe("lines in chunks", () => {
  it.each([0, 1, 2, 3])("come back where a cut falls within a character (%i)", (shift) => {
    const lines = ["x".repeat(shift), ...Array.from({ length: 40 }, (_, each) => "🐝".repeat(each * 997))];
    const chunks = cut(lines);
    expect(chunks.length).toBeGreaterThan(5);
    expect(chunks.slice(0, -1).every(({ length }) => length === limits.snapshotChunkBytesMax)).toBe(true);
    expect(read(chunks)).toEqual(lines);
  });

  it("come back where one is larger than several chunks", () => {
    const lines = ["a", "é".repeat(limits.snapshotChunkBytesMax), "b"];
    expect(read(cut(lines))).toEqual(lines);
  });

  it("are none where there are none", () => {
    expect(cut([])).toEqual([]);
  });

  it("that do not end, or are no text, are damage", () => {
    const [chunk = Buffer.from("")] = cut(["line"]);
    expect(() => read([chunk.subarray(0, 3)])).toThrow(JournalDamagedError);
    expect(() => read([Buffer.from([0xff])])).toThrow(JournalDamagedError);
  });
});
