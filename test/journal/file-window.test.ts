// A window shows the bytes of its file, wherever it moves and however few bytes a read brings.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { JournalFile } from "../../src/journal/file/handle.ts";
import { FileWindow } from "../../src/journal/file/window.ts";

function fileOf(bytes: Buffer, atMost: number): JournalFile {
  const read = async (target: Buffer, at: number, length: number, position: number) => {
    const end = position + Math.min(length, atMost);
    const bytesRead = position < bytes.length ? bytes.copy(target, at, position, end) : 0;
    return { bytesRead, buffer: target };
  };
  return { read } as unknown as JournalFile;
}

it("shows the file's bytes at any offset, in any order", async () => {
  const bytes = Buffer.from(Array.from({ length: 200 }, (_, at) => at));
  const look = fc.record({ offset: fc.nat(220), length: fc.nat(60), end: fc.nat(220) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(look),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 50 }),
      async (looks, windowBytes, atMost) => {
        const window = new FileWindow(fileOf(bytes, atMost), windowBytes);
        for (const { offset, length, end } of looks) {
          const wanted = bytes.subarray(offset, Math.max(offset, Math.min(offset + length, end)));
          expect(Buffer.from(await window.view(offset, { length, end }))).toEqual(Buffer.from(wanted));
        }
      },
    ),
  );
});
