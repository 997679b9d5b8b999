// The file journal on a faulty disk: full, broken, slow.

import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { type JournalFile, type OpenJournalFile, openJournalFile } from "../../src/journal/file/handle.ts";
import { type FileJournal, openFileJournal } from "../../src/journal/file.ts";
import { Gate } from "../support/gate.ts";
import { bytesOf, Follower, fill, filled, linesOf, noise, range } from "./records.ts";

type Operation = "writev" | "datasync" | "truncate" | "read";

type Operations = Partial<Record<Operation, (...given: never[]) => Promise<unknown>>>;

/** A file with some operations replaced. */
function overridden(file: JournalFile, operations: Operations): JournalFile {
  return new Proxy(file, {
    get(target, name) {
      const own = Reflect.get(operations, name) ?? Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}

/** A disk that counts syncs, and holds or fails operations on demand. */
class FaultyDisk {
  syncs = 0;
  bytesRead = 0;
  /** Maximum size of a file; a larger write is done in part and fails. */
  roomBytes = Number.POSITIVE_INFINITY;
  fault: { readonly on: Operation; readonly code: string } | undefined;
  /** Writes wait for the gate. */
  gate: Promise<void> | undefined;

  readonly openFile: OpenJournalFile = async (path, access) =>
    this.#wrap(await openJournalFile(path, access));

  #wrap(file: JournalFile): JournalFile {
    return overridden(file, {
      writev: async (parts: readonly Uint8Array[], at: number) => {
        await this.gate;
        this.#fail("writev");
        const room = Math.max(this.roomBytes - at, 0);
        if (room === 0) throw systemError("ENOSPC");
        return await file.writev([Buffer.concat(parts).subarray(0, room)], at);
      },
      datasync: async () => {
        this.#fail("datasync");
        this.syncs += 1;
        await file.datasync();
      },
      truncate: async (size: number) => {
        this.#fail("truncate");
        await file.truncate(size);
      },
      read: async (target: Buffer, from: number, length: number, at: number) => {
        this.#fail("read");
        const result = await file.read(target, from, length, at);
        this.bytesRead += result.bytesRead;
        return result;
      },
    });
  }

  #fail(on: Operation): void {
    if (this.fault?.on === on) throw systemError(this.fault.code);
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: the disk says no`), { code, syscall: "write" });
}

let folder: string;
/** Of segment 1. */
let path: string;
let disk: FaultyDisk;
let journal: FileJournal;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "waggle-chain-"));
  path = join(folder, "segments", "1", "records.log");
  disk = new FaultyDisk();
  journal = await openFileJournal({ folder, openFile: disk.openFile });
  await journal.create(1);
});

afterEach(async () => {
  await journal.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Lines and torn tails after a restart. */
async function reopened() {
  await journal.close();
  journal = await openFileJournal({ folder });
  return { lines: await linesOf(journal.segment(1).replay(1)), recovered: journal.recovered };
}

describe("a file journal on a disk", () => {
  it("syncs once for all appends and the seal that wait", async () => {
    const segment = journal.segment(1);
    const before = disk.syncs;
    const filling = fill(segment, 3_000);
    const sealing = segment.seal();
    await filling;
    expect(await sealing).toBe(true);
    expect(disk.syncs - before).toBe(1);
    await journal.create(2);
    const alone = disk.syncs;
    for (const position of range(1, 3)) await fill(journal.segment(2), position, position);
    expect(disk.syncs - alone).toBe(3);
  });

  it("syncs records of an earlier process before reading them", async () => {
    await fill(journal.segment(1), 1);
    await journal.create(2);
    await journal.segment(2).seal();
    await journal.close();
    const before = disk.syncs;
    journal = await openFileJournal({ folder, openFile: disk.openFile });
    expect(disk.syncs - before).toBe(2);
  });

  it("returns no record and no seal before the sync", async () => {
    const segment = journal.segment(1);
    await fill(segment, 1);
    const gate = new Gate();
    disk.gate = gate.opened;
    const follower = new Follower(segment);
    await follower.hasRead(1);
    const appending = segment.append(bytesOf("record 2"), 1, { isOpened: true });
    const sealing = segment.seal();
    expect(await segment.end()).toMatchObject({ position: 1, isSealed: false });
    expect(await segment.read(2)).toBeUndefined();
    expect(await segment.opened()).toBeUndefined();
    gate.open();
    expect(await appending).toEqual({ kind: "stored" });
    expect(await sealing).toBe(true);
    await follower.ended;
    expect(follower.lines).toEqual(filled(1, 2));
    expect((await segment.opened())?.position).toBe(2);
  });

  it("answers full on a full disk, cuts off a partial write, and continues when the disk has space", async () => {
    const segment = journal.segment(1);
    await fill(segment, 2);
    const { size } = statSync(path);
    disk.roomBytes = size + 40;
    const outcomes = await Promise.all([segment.append(noise(100), 2), segment.append(noise(10), 3)]);
    expect(outcomes).toEqual([
      { kind: "full", message: expect.stringContaining("no room on the disk: ENOSPC") },
      { kind: "full", message: expect.anything() },
    ]);
    await expect(segment.seal()).rejects.toThrow(/segment 1 cannot be sealed: no room on the disk/);
    await expect(segment.seal()).rejects.toThrow(UnreachableError);
    expect(statSync(path).size).toBe(size);
    expect(await segment.end()).toMatchObject({ position: 2, isSealed: false });
    disk.roomBytes = Number.POSITIVE_INFINITY;
    await fill(segment, 4, 3);
    expect(await segment.seal()).toBe(true);
    expect(await reopened()).toEqual({ lines: filled(1, 4), recovered: [] });
  });

  it("creates no segment on a full disk, and leaves no files behind", async () => {
    disk.roomBytes = 10;
    await expect(journal.create(2)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
    expect(await journal.list()).toEqual([1]);
    expect(readdirSync(join(folder, "segments"))).toEqual(["1"]);
    disk.roomBytes = Number.POSITIVE_INFINITY;
    await journal.create(2);
    expect(await journal.list()).toEqual([1, 2]);
  });

  it("writes in pieces if the disk accepts less at a time", async () => {
    const openFile: OpenJournalFile = async (file, access) => {
      const inner = await openJournalFile(file, access);
      return overridden(inner, {
        writev: (parts: readonly Uint8Array[], at: number) =>
          inner.writev([Buffer.concat(parts).subarray(0, 7)], at),
      });
    };
    await journal.close();
    journal = await openFileJournal({ folder, openFile });
    await fill(journal.segment(1), 5);
    await journal.create(2);
    await fill(journal.segment(2), 1);
    expect(await reopened()).toEqual({ lines: filled(1, 5), recovered: [] });
  });

  it.each([
    { on: "datasync", code: "EIO" },
    { on: "writev", code: "EIO" },
  ] as const)(
    "writes nothing more to any segment after $code on $on, until it is opened again",
    async (fault) => {
      await journal.create(2);
      const segment = journal.segment(1);
      await fill(segment, 1);
      disk.fault = fault;
      expect(await segment.append(bytesOf("record 2"), 1)).toMatchObject({ kind: "unknown" });
      disk.fault = undefined;
      const damaged = { kind: "unknown", cause: { code: "WAGGLE_JOURNAL_DAMAGED" } };
      expect(await segment.append(bytesOf("record 2"), 1)).toMatchObject(damaged);
      expect(await segment.append(bytesOf("record 3"), 2)).toMatchObject(damaged);
      expect(await journal.segment(2).append(bytesOf("record 1"), 0)).toMatchObject(damaged);
      for (const change of [segment.seal(), journal.create(3), journal.remove(2)])
        await expect(change).rejects.toThrow(UnreachableError);
      expect(await linesOf(segment.replay(1))).toEqual(filled(1, 1));
      const { lines } = await reopened();
      expect([filled(1, 1), filled(1, 2)]).toContainEqual(lines);
      await fill(journal.segment(1), 3, lines.length + 1);
    },
  );

  it("stops writing if a partial write on a full disk cannot be cut off", async () => {
    const segment = journal.segment(1);
    await fill(segment, 1);
    disk.roomBytes = statSync(path).size + 10;
    disk.fault = { on: "truncate", code: "EIO" };
    expect(await segment.append(noise(100), 1)).toMatchObject({ kind: "unknown" });
    disk.fault = undefined;
    disk.roomBytes = Number.POSITIVE_INFINITY;
    expect(await segment.append(bytesOf("record 2"), 1)).toMatchObject({ kind: "unknown" });
    expect((await reopened()).lines).toEqual(filled(1, 1));
  });

  it("writes nothing when another process wrote to the file", async () => {
    await fill(journal.segment(1), 1);
    writeFileSync(path, bytesOf("foreign"), { flag: "a" });
    expect(await journal.segment(1).append(bytesOf("record 2"), 1)).toMatchObject({
      kind: "unknown",
      cause: { message: expect.stringContaining("another process writes to it") },
    });
    expect(await reopened()).toMatchObject({ lines: filled(1, 1), recovered: [{ cutBytes: 7 }] });
  });

  it("reports a failed disk if a record cannot be read", async () => {
    await fill(journal.segment(1), 2);
    disk.fault = { on: "read", code: "EIO" };
    await expect(journal.segment(1).read(1)).rejects.toThrow(UnreachableError);
    await expect(linesOf(journal.segment(1).replay(1))).rejects.toThrow("the journal's disk failed (EIO");
    disk.fault = undefined;
    expect(await linesOf(journal.segment(1).replay(1))).toEqual(filled(1, 2));
  });

  it("opens a sealed segment without reading it, and finds its opened record", async () => {
    const segment = journal.segment(1);
    await segment.append(noise(400_000), 0);
    await segment.append(bytesOf("opened"), 1, { isOpened: true });
    await segment.append(noise(400_000), 2);
    await segment.seal();
    await journal.close();
    disk.bytesRead = 0;
    journal = await openFileJournal({ folder, openFile: disk.openFile });
    expect(await journal.segment(1).opened()).toEqual({ position: 2, bytes: bytesOf("opened") });
    expect(disk.bytesRead).toBeLessThan(1_000);
  });

  it("finds a record among many without reading all of them", async () => {
    const segment = journal.segment(1);
    for (const position of range(1, 20)) await segment.append(noise(100_000, position), position - 1);
    disk.bytesRead = 0;
    const record = await segment.read(15);
    expect(Buffer.compare(record?.bytes as Uint8Array, noise(100_000, 15))).toBe(0);
    expect(disk.bytesRead).toBeLessThan(1_000_000);
  });

  it("answers missing to the appends that wait when their segment is removed", async () => {
    const segment = journal.segment(1);
    const gate = new Gate();
    disk.gate = gate.opened;
    const underWay = segment.append(bytesOf("record 1"), 0);
    await Promise.resolve();
    const waiting = segment.append(bytesOf("record 2"), 1);
    const removing = journal.remove(1);
    expect(await waiting).toEqual({ kind: "missing" });
    expect(await segment.append(bytesOf("record 2"), 1)).toEqual({ kind: "missing" });
    gate.open();
    expect(await underWay).toEqual({ kind: "stored" });
    await removing;
    expect(readdirSync(join(folder, "segments"))).toEqual([]);
  });

  it("cuts off nothing and answers nothing twice when it is closed during a write", async () => {
    const segment = journal.segment(1);
    await fill(segment, 1);
    const gate = new Gate();
    disk.gate = gate.opened;
    const appending = segment.append(bytesOf("record 2"), 1);
    const waiting = segment.append(bytesOf("record 3"), 2);
    await Promise.resolve();
    const closing = journal.close();
    expect(await appending).toMatchObject({ kind: "unknown" });
    expect(await waiting).toMatchObject({ kind: "unknown" });
    gate.open();
    await closing;
    const { lines, recovered } = await reopened();
    expect(recovered).toEqual([]);
    expect(lines.length).toBeGreaterThanOrEqual(1);
  });
});
