// Lines survive the way through chunks, wherever a chunk ends: within a line, and within a character.

import fc from "fast-check";
import { expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { ChunkCutter, LineReader } from "../../src/journal/chunks.ts";
import { limits } from "../../src/limits.ts";

const line = fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", ""));
const lists = fc.array(line, { minLength: 1 });

function bytesOf(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((each) => `${each}\n`).join(""));
}

it("chunks of any size hold the same lines", () => {
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 20 }), (lines, size) => {
      const bytes = bytesOf(lines);
      const reader = new LineReader();
      const read: string[] = [];
      for (let at = 0; at < bytes.length; at += size)
        read.push(...reader.take(bytes.subarray(at, at + size)));
      reader.end();
      expect(read).toEqual(lines);
    }),
  );
});

it("a line longer than a chunk is cut, and read as the same line", () => {
  const lines = ["a", "é".repeat(limits.baseChunkBytesMax), "b"];
  const cutter = new ChunkCutter();
  const chunks = [...lines.flatMap((each) => cutter.add(each)), ...cutter.end()];
  expect(Math.max(...chunks.map(({ length }) => length))).toBe(limits.baseChunkBytesMax);
  const reader = new LineReader();
  expect(chunks.flatMap((chunk) => reader.take(chunk))).toEqual(lines);
});

it("bytes that are no text, and a line without an end, are damage", () => {
  expect(() => new LineReader().take(Buffer.from([0x61, 0xc3, 0x0a]))).toThrow(JournalDamagedError);
  const reader = new LineReader();
  reader.take(Buffer.from("a\nb"));
  expect(() => reader.end()).toThrow("ends within a line");
});
