// Exports: every byte of every record comes back, and a file that is not whole is refused.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportLines, openExport } from "../../src/audit/export.ts";
import { verifyJournal } from "../../src/audit/verifying/verify.ts";
import type { JournalReader } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { bytesOf, noise } from "../journal/records.ts";
import { aCompactedLog } from "../journal/tampered.ts";
import { ManualClock } from "../support/manual-clock.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waggle-export-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function exported(journal: JournalReader, name: string): Promise<{ path: string; lines: string[] }> {
  const lines: string[] = [];
  for await (const line of exportLines(journal, "default")) lines.push(line);
  const path = join(folder, name);
  await writeFile(path, lines.map((line) => `${line}\n`).join(""));
  return { path, lines };
}

async function recordsOf(
  journal: JournalReader,
): Promise<[segment: number, position: number, hex: string][]> {
  const records: [number, number, string][] = [];
  for (const number of await journal.list())
    for await (const { position, bytes } of journal.segment(number).replay(1))
      records.push([number, position, Buffer.from(bytes).toString("hex")]);
  return records;
}

describe("an export", () => {
  it("holds every byte of a journal with bases, copies and records of other programs", async () => {
    const log = await aCompactedLog();
    const end = (await log.journal.segment(3).end()) ?? expect.fail("it exists");
    const strange = [noise(300), bytesOf('{ "not": "printed so" }'), bytesOf("")];
    for (const [at, bytes] of strange.entries())
      await log.journal.segment(3).append(bytes, end.position + at);
    const journal = new MemoryJournal(log.store);
    const { path } = await exported(journal, "whole.ndjson");
    const reader = await openExport(path);
    expect(await recordsOf(reader)).toEqual(await recordsOf(journal));
    expect(await reader.segment(3).opened()).toEqual(await journal.segment(3).opened());
    expect(await reader.segment(2).read(2)).toEqual(await journal.segment(2).read(2));
    expect(await reader.segment(2).read(9_999)).toBeUndefined();
    expect(await reader.segment(9).end()).toBeUndefined();
    const found = await verifyJournal({ journal: reader, clock: log.clock });
    expect(found).toMatchObject({ fault: undefined, basesCompared: 2, tail: log.tail, foreign: 3 });
    await reader.close();
  });

  it("of a journal with lost records has a line for each, and is verified like the journal", async () => {
    const log = await aCompactedLog();
    log.store.loseRecords(2, 12);
    const journal = new MemoryJournal(log.store);
    const { path, lines } = await exported(journal, "damaged.ndjson");
    expect(lines.filter((line) => line.includes('"damage":'))).toHaveLength(1);
    const reader = await openExport(path);
    const [found, expected] = [
      await verifyJournal({ journal: reader, clock: log.clock }),
      await verifyJournal({ journal, clock: log.clock }),
    ];
    expect(found).toEqual(expected);
    expect(found?.gaps).toHaveLength(1);
    const { from, to, isAdmitted } = found?.gaps[0] ?? expect.fail("a gap");
    expect(isAdmitted).toBe(false);
    expect(JSON.parse(lines.at(-1) ?? "").lost).toEqual([{ from, to, isAdmitted }]);
    await reader.close();
  });

  it("of a journal without records is whole, and has no live segment", async () => {
    const clock = new ManualClock();
    const { path } = await exported(new MemoryJournal(new MemoryJournalStore({ clock })), "empty.ndjson");
    const reader = await openExport(path);
    expect(await verifyJournal({ journal: reader, clock })).toBeUndefined();
    await reader.close();
  });

  it.each<[string, (lines: string[]) => string[], RegExp]>([
    ["without its last line", (lines) => lines.slice(0, -1), /was cut off/],
    ["without a line in the middle", (lines) => lines.toSpliced(4, 1), /lacks a record before record 5/],
    ["without its head", (lines) => lines.slice(1), /is no export/],
    ["with half a line", (lines) => [...lines.slice(0, 5), lines[5]?.slice(0, 40) ?? ""], /no JSON at byte/],
    [
      "of a later version",
      ([head = "", ...rest]) => [head.replace('"version":1', '"version":7'), ...rest],
      /version 7/,
    ],
    ["without content", () => [], /is empty/],
  ])("%s is refused", async (name, edit, message) => {
    const log = await aCompactedLog();
    const { lines } = await exported(new MemoryJournal(log.store), "right.ndjson");
    const path = join(folder, `${name.replaceAll(" ", "-")}.ndjson`);
    await writeFile(path, edit(lines).join("\n"));
    await expect(openExport(path)).rejects.toThrow(message);
  });
});
