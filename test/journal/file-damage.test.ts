// The file journal after a crash cut a file short, and after damage. Opening the journal cuts off a torn tail and
// reports the bytes. Damage is never taken for the end of a segment.

import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { openFileJournalReader } from "../../src/journal/file/reader.ts";
import { HEAD_BYTES, HEADER_BYTES, SEAL_BYTES } from "../../src/journal/file/record.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { SegmentRecord } from "../../src/journal/journal.ts";
import { flipBit } from "../support/flip-bit.ts";
import { bytesOf, Follower, fill, filled, linesOf, noise, range } from "./records.ts";

let folder: string;
/** Of segment 1. */
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-chain-"));
  path = join(folder, "segments", "1", "records.log");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A closed journal with `records` in segment 1, each written by itself. */
async function written(records: readonly Uint8Array[], { isSealed = false } = {}): Promise<Buffer> {
  const journal = await openFileJournal({ folder });
  await journal.create(1);
  for (const [at, bytes] of records.entries())
    expect(await journal.segment(1).append(bytes, at)).toEqual({ kind: "stored" });
  if (isSealed) await journal.segment(1).seal();
  await journal.close();
  return readFileSync(path);
}

const three = range(1, 3).map((position) => bytesOf(`record ${position}`));

/** Where the record behind the first `count` records begins. @param sizes of the records */
function startOf(sizes: readonly number[], count: number): number {
  return sizes.slice(0, count).reduce((end, size) => end + HEAD_BYTES + size, HEADER_BYTES);
}

async function reopened() {
  const journal = await openFileJournal({ folder });
  const lines = await linesOf(journal.segment(1).replay(1));
  const end = await journal.segment(1).end();
  await journal.close();
  return { lines, isSealed: end?.isSealed, recovered: journal.recovered };
}

describe("a segment cut short by a crash", () => {
  it("loses the incomplete records, wherever the file ends, and reports the bytes cut off", async () => {
    const whole = await written(three);
    const starts = range(0, 3).map((count) => startOf([8, 8, 8], count));
    for (const size of range(startOf([8], 1), whole.length)) {
      writeFileSync(path, whole.subarray(0, size));
      const kept = starts.filter((start) => start <= size).length - 1;
      const cutBytes = size - startOf([8, 8, 8], kept);
      expect(await reopened()).toEqual({
        lines: filled(1, kept),
        isSealed: false,
        recovered: cutBytes === 0 ? [] : [{ segment: 1, cutBytes, atPosition: kept + 1 }],
      });
      expect(statSync(path).size).toBe(startOf([8, 8, 8], kept));
    }
  });

  it("is sealed or not, wherever the seal's write ended, and keeps its end", async () => {
    const whole = await written(three, { isSealed: true });
    const end = startOf([8, 8, 8], 3);
    expect(whole.length).toBe(end + SEAL_BYTES);
    for (const size of range(end, whole.length)) {
      writeFileSync(path, whole.subarray(0, size));
      const { lines, isSealed, recovered } = await reopened();
      expect(lines).toEqual(filled(1, 3));
      expect(isSealed).toBe(size === whole.length);
      expect(recovered.map(({ cutBytes }) => cutBytes)).toEqual(isSealed || size === end ? [] : [size - end]);
      expect(statSync(path).size).toBe(isSealed ? size : end);
    }
  });

  it("stays sealed, and loses bytes after the seal", async () => {
    const whole = await written(three, { isSealed: true });
    writeFileSync(path, noise(60), { flag: "a" });
    expect(await reopened()).toEqual({
      lines: filled(1, 3),
      isSealed: true,
      recovered: [{ segment: 1, cutBytes: 60, atPosition: 4 }],
    });
    expect(readFileSync(path)).toEqual(whole);
  });

  it("keeps a prefix of the records, whatever their sizes, and accepts the next record", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 6 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (sizes, share) => {
          rmSync(join(folder, "segments"), { recursive: true, force: true });
          const whole = await written(sizes.map((size, at) => noise(size, at + 1)));
          const size = HEADER_BYTES + Math.round(share * (whole.length - HEADER_BYTES));
          truncateSync(path, size);
          const kept = sizes.filter((_, at) => startOf(sizes, at + 1) <= size).length;
          const journal = await openFileJournal({ folder });
          const records: SegmentRecord[] = [];
          for await (const record of journal.segment(1).replay(1)) records.push(record);
          expect(records.map(({ bytes }) => Buffer.from(bytes))).toEqual(
            sizes.slice(0, kept).map((length, at) => Buffer.from(noise(length, at + 1))),
          );
          expect(await journal.segment(1).append(bytesOf("on"), kept)).toEqual({ kind: "stored" });
          await journal.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  it("loses a tail of zeros, as left by a power loss", async () => {
    await written(three);
    writeFileSync(path, Buffer.alloc(4096), { flag: "a" });
    expect(await reopened()).toMatchObject({
      lines: filled(1, 3),
      recovered: [{ segment: 1, cutBytes: 4096, atPosition: 4 }],
    });
  });

  it("loses both records of one write when the first is broken, for neither was acknowledged", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await fill(journal.segment(1), 1);
    await fill(journal.segment(1), 3, 2);
    await journal.close();
    flipBit(path, startOf([8], 1) + HEAD_BYTES);
    const cutBytes = 2 * (HEAD_BYTES + 8);
    expect(await reopened()).toMatchObject({
      lines: filled(1, 1),
      recovered: [{ segment: 1, cutBytes, atPosition: 2 }],
    });
  });

  it("is reported for each segment", async () => {
    const journal = await openFileJournal({ folder });
    for (const number of [1, 2, 3]) {
      await journal.create(number);
      await fill(journal.segment(number), number);
    }
    await journal.close();
    for (const number of [1, 3])
      writeFileSync(join(folder, "segments", `${number}`, "records.log"), "x", { flag: "a" });
    expect((await reopened()).recovered).toEqual([
      { segment: 1, cutBytes: 1, atPosition: 2 },
      { segment: 3, cutBytes: 1, atPosition: 4 },
    ]);
  });
});

describe("a damaged segment", () => {
  it("keeps its end and throws at the damaged record, whichever of its bits is flipped", async () => {
    const whole = await written(three);
    const second = startOf([8], 1);
    for (const offset of range(second, startOf([8, 8], 2) - 1)) {
      writeFileSync(path, whole);
      flipBit(path, offset, offset % 8);
      const journal = await openFileJournal({ folder });
      const segment = journal.segment(1);
      expect(journal.recovered).toEqual([]);
      expect(await segment.end()).toMatchObject({ position: 3, missing: 1 });
      expect(await linesOf(segment.replay(1, { until: 1 }))).toEqual(filled(1, 1));
      await expect(linesOf(segment.replay(1))).rejects.toThrow(JournalDamagedError);
      await expect(segment.read(2)).rejects.toThrow(
        `record 2 of segment 1 cannot be read: ${path} is damaged at byte ${second}`,
      );
      await expect(new Follower(segment).ended).rejects.toThrow("record 2 of segment 1");
      await journal.close();
      expect(readFileSync(path)).toHaveLength(whole.length);
    }
  });

  it("loses no whole record between the damage and its proof", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    for (const [from, to] of [
      [1, 1],
      [2, 3],
      [4, 4],
    ] as const)
      await fill(journal.segment(1), to, from);
    await journal.close();
    flipBit(path, startOf([8], 1));
    const damaged = await openFileJournal({ folder });
    expect(await damaged.segment(1).end()).toMatchObject({ position: 4, missing: 1 });
    expect(await linesOf(damaged.segment(1).replay(3))).toEqual(filled(3, 4));
    await damaged.close();
  });

  it("can be sealed, and read after the damage if the damage is found", async () => {
    await written([...three, noise(2_000_000), bytesOf("record 5")]);
    flipBit(path, startOf([8], 1) + 3);
    const journal = await openFileJournal({ folder });
    const segment = journal.segment(1);
    expect(await segment.append(bytesOf("record 6"), 5)).toEqual({ kind: "stored" });
    expect(await segment.seal()).toBe(true);
    expect(await linesOf(segment.replay(5))).toEqual(filled(5, 6));
    await journal.close();
    expect(await (await openFileJournalReader(folder)).segment(1).end()).toMatchObject({
      position: 6,
      isSealed: true,
    });
  });

  it("is noticed even if the proof is megabytes after the damage", async () => {
    await written([bytesOf("record 1"), noise(3_000_000), bytesOf("record 3")]);
    flipBit(path, startOf([8], 1));
    const journal = await openFileJournal({ folder });
    expect(await journal.segment(1).end()).toMatchObject({ position: 3, missing: 1 });
    await expect(journal.segment(1).read(2)).rejects.toThrow(JournalDamagedError);
    expect(await linesOf(journal.segment(1).replay(3))).toEqual(filled(3, 3));
    await journal.close();
  });

  it("is noticed if a record was cut out, or the order of records changed", async () => {
    const whole = await written(three);
    const [first, second, third] = range(0, 2).map((at) =>
      whole.subarray(startOf([8, 8, 8], at), startOf([8, 8, 8], at + 1)),
    ) as [Buffer, Buffer, Buffer];
    const header = whole.subarray(0, HEADER_BYTES);
    for (const records of [
      [first, third],
      [first, third, second],
      [second, third],
    ]) {
      writeFileSync(path, Buffer.concat([header, ...records]));
      const journal = await openFileJournal({ folder });
      expect(await journal.segment(1).end()).toMatchObject({ position: 3, missing: 1 });
      await expect(linesOf(journal.segment(1).replay(1))).rejects.toThrow(JournalDamagedError);
      await journal.close();
    }
  });

  it("keeps its end if sealed, and throws when read", async () => {
    await written(three, { isSealed: true });
    flipBit(path, startOf([8], 1) + HEAD_BYTES);
    const journal = await openFileJournal({ folder });
    const segment = journal.segment(1);
    expect(await segment.end()).toMatchObject({ position: 3, isSealed: true });
    await expect(linesOf(segment.replay(1))).rejects.toThrow("record 2 of segment 1 cannot be read");
    expect(await linesOf(segment.replay(3))).toEqual(filled(3, 3));
    await journal.close();
  });

  it("is noticed while the journal is open", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await fill(journal.segment(1), 3);
    flipBit(path, startOf([8, 8], 2) + HEAD_BYTES);
    await expect(journal.segment(1).read(3)).rejects.toThrow(JournalDamagedError);
    expect(await journal.segment(1).read(2)).toBeDefined();
    await journal.close();
  });

  it("is not opened if the header is damaged, of a different segment, or not a header", async () => {
    const whole = await written(three);
    for (const [offset, reason] of [
      [0, "it does not begin as a segment does"],
      [9, "its header is damaged"],
      [13, "its header is damaged"],
    ] as const) {
      writeFileSync(path, whole);
      flipBit(path, offset);
      await expect(openFileJournal({ folder })).rejects.toThrow(`${path} cannot be read: ${reason}`);
    }
    for (const text of ["", "short", "some other file of the user's"]) {
      writeFileSync(path, text);
      await expect(openFileJournal({ folder })).rejects.toThrow(JournalDamagedError);
      expect(readFileSync(path, "utf8")).toBe(text);
    }
    const journal = await openFileJournal({ folder: join(folder, "another") });
    await journal.create(7);
    await journal.close();
    writeFileSync(path, readFileSync(join(folder, "another", "segments", "7", "records.log")));
    await expect(openFileJournal({ folder })).rejects.toThrow("it belongs to segment 7");
    rmSync(path);
    await expect(openFileJournal({ folder })).rejects.toThrow(`${path} is missing`);
    writeFileSync(path, whole);
    expect((await reopened()).lines).toEqual(filled(1, 3));
  });
});
