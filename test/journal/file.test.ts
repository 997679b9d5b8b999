// The journal in a file: the conformance suite, and what disks, crashes and second processes do to it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { type JournalFile, type OpenJournalFile, openJournalFile } from "../../src/journal/file/handle.ts";
import { FILE_HEADER_BYTES, RECORD_HEAD_BYTES } from "../../src/journal/file/record.ts";
import { type FileJournalOptions, openFileJournal } from "../../src/journal/file.ts";
import type { JournalRecord } from "../../src/journal/journal.ts";
import { flipBit } from "../support/flip-bit.ts";
import { Gate } from "../support/gate.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, noise, range, tell, toldOf } from "./records.ts";

function aFolder(): string {
  return mkdtempSync(join(tmpdir(), "waggle-journal-"));
}

describeJournal("file", async () => {
  const folder = aFolder();
  return {
    open: () => openFileJournal({ folder }),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

let folder: string;
let path: string;

beforeEach(() => {
  folder = aFolder();
  path = join(folder, "journal.log");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A closed journal with these records. */
async function written(...records: readonly Uint8Array[]): Promise<void> {
  const journal = await openFileJournal({ folder });
  for (const [at, bytes] of records.entries())
    expect(await journal.append(bytes, at)).toMatchObject({ seq: at + 1 });
  await journal.close();
}

/** What opening finds, and what it says of it. */
async function reopened() {
  const journal = await openFileJournal({ folder });
  const lines = await tell(journal.replay(1));
  await journal.close();
  return { lines, recovered: journal.recovered };
}

describe("a file journal whose writer was killed", () => {
  it("loses the last record at most, wherever its write ended, and says so", async () => {
    const last = bytesOf("the last record");
    await written(bytesOf("record 1"), bytesOf("record 2"), last);
    const whole = readFileSync(path);
    const lastAt = whole.length - RECORD_HEAD_BYTES - last.length;
    for (const size of range(lastAt + 1, whole.length - 1)) {
      writeFileSync(path, whole.subarray(0, size));
      const { lines, recovered } = await reopened();
      expect(lines).toEqual(toldOf(1, 2));
      expect(recovered).toEqual({ cutBytes: size - lastAt, atSeq: 3 });
      expect(statSync(path).size).toBe(lastAt);
    }
    writeFileSync(path, whole.subarray(0, lastAt));
    expect(await reopened()).toEqual({ lines: toldOf(1, 2), recovered: undefined });
  });

  it("keeps a prefix of what was written, wherever the file ends", async () => {
    const seeds = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(seeds, fc.double({ min: 0, max: 1, noNaN: true }), async (sizes, share) => {
        rmSync(path, { force: true });
        await written(...sizes.map((size, at) => noise(size, at + 1)));
        const ends = sizes.map((_, at) => endOf(sizes, at + 1));
        const size = Math.round(share * (ends.at(-1) ?? 0));
        truncateSync(path, size);
        const kept = ends.filter((end) => end <= size).length;

        const journal = await openFileJournal({ folder });
        const records: JournalRecord[] = [];
        for await (const record of journal.replay(1)) records.push(record);
        expect(records.map(({ seq }) => seq)).toEqual(range(1, kept));
        expect(await journal.append(bytesOf("on"), kept)).toEqual({ kind: "stored", seq: kept + 1 });
        await journal.close();
      }),
      { numRuns: 60 },
    );
  });

  it("is not fooled by a tail of zeros, which is what a power failure may leave", async () => {
    await written(bytesOf("record 1"));
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(4096)]));
    expect(await reopened()).toEqual({ lines: toldOf(1, 1), recovered: { cutBytes: 4096, atSeq: 2 } });
  });

  it("cuts the first of two records of one write with the second, for neither was promised", async () => {
    const journal = await openFileJournal({ folder });
    await fill(journal, 1);
    await fill(journal, 3, 2);
    await journal.close();
    flipBit(path, endOf([8], 1) + RECORD_HEAD_BYTES);
    const cutBytes = 2 * (RECORD_HEAD_BYTES + 8);
    expect(await reopened()).toEqual({ lines: toldOf(1, 1), recovered: { cutBytes, atSeq: 2 } });
  });

  it("begins again where even the file's header was torn", async () => {
    await written();
    for (const size of range(0, FILE_HEADER_BYTES - 1)) {
      truncateSync(path, size);
      expect(await reopened()).toEqual({ lines: [], recovered: undefined });
    }
    writeFileSync(path, Buffer.alloc(FILE_HEADER_BYTES));
    expect(await reopened()).toEqual({ lines: [], recovered: undefined });
  });
});

function endOf(sizes: readonly number[], count: number): number {
  return sizes.slice(0, count).reduce((end, size) => end + RECORD_HEAD_BYTES + size, FILE_HEADER_BYTES);
}

describe("a damaged file journal", () => {
  it("is refused, with the record and the byte, whichever bit of a synced record is flipped", async () => {
    await written(bytesOf("record 1"), bytesOf("record 2"), bytesOf("record 3"));
    const whole = readFileSync(path);
    const secondAt = endOf([8], 1);
    for (const offset of range(secondAt, endOf([8, 8], 2) - 1)) {
      writeFileSync(path, whole);
      flipBit(path, offset, offset % 8);
      const opening = openFileJournal({ folder });
      await expect(opening).rejects.toThrow(JournalDamagedError);
      await expect(opening).rejects.toThrow(`record 2 at byte ${secondAt}`);
    }
    writeFileSync(path, whole);
    expect((await reopened()).lines).toEqual(toldOf(1, 3));
  });

  it("is refused also where the proof lies megabytes behind the damage", async () => {
    await written(bytesOf("record 1"), noise(3_000_000), bytesOf("record 3"));
    flipBit(path, endOf([8], 1));
    await expect(openFileJournal({ folder })).rejects.toThrow(
      /record 2 at byte 48 .* record 3 at byte 3000072/,
    );
  });

  it("is refused where a record is missing", async () => {
    await written(bytesOf("record 1"), bytesOf("record 2"), bytesOf("record 3"));
    const whole = readFileSync(path);
    writeFileSync(path, Buffer.concat([whole.subarray(0, endOf([8], 1)), whole.subarray(endOf([8, 8], 2))]));
    await expect(openFileJournal({ folder })).rejects.toThrow(
      /record 3 stands at byte 48, where record 2 belongs/,
    );
  });

  it("is refused where its header is damaged, newer, or something else", async () => {
    await written(bytesOf("record 1"));
    const whole = readFileSync(path);
    flipBit(path, 9);
    await expect(openFileJournal({ folder })).rejects.toThrow("its header is damaged");
    writeFileSync(path, "some other file of the user's");
    await expect(openFileJournal({ folder })).rejects.toThrow("it does not begin as a journal does");
    writeFileSync(path, "short");
    await expect(openFileJournal({ folder })).rejects.toThrow(JournalDamagedError);
    expect(readFileSync(path, "utf8")).toBe("short");
    writeFileSync(path, whole);
    expect((await reopened()).lines).toEqual(toldOf(1, 1));
  });

  it("is found out while it is read, too", async () => {
    const journal = await openFileJournal({ folder });
    await fill(journal, 3);
    const handle = await openJournalFile(path, "write");
    await handle.write([bytesOf("X")], endOf([8, 8], 2) + RECORD_HEAD_BYTES);
    await handle.close();
    await expect(tell(journal.replay(1))).rejects.toThrow(JournalDamagedError);
    await expect(journal.read(3)).rejects.toThrow("record 3 at byte 80");
    expect(await journal.read(2)).toBeDefined();
    await journal.close();
  });
});

/** A disk that counts, holds and fails as a test wants it. */
class FaultyDisk {
  syncs = 0;
  /** Bytes the file may have; a write beyond it is done in part and fails. */
  roomBytes = Number.POSITIVE_INFINITY;
  fault: { readonly on: "write" | "sync" | "truncate"; readonly code: string } | undefined;
  /** What a write waits for. */
  gate: Promise<void> | undefined;

  get options(): FileJournalOptions {
    return { folder, openFile: async (file, access) => this.#wrap(await openJournalFile(file, access)) };
  }

  #wrap(file: JournalFile): JournalFile {
    return {
      size: () => file.size(),
      read: (target, position) => file.read(target, position),
      close: () => file.close(),
      truncate: async (size) => {
        this.#fail("truncate");
        await file.truncate(size);
      },
      write: async (parts, position) => {
        await this.gate;
        this.#fail("write");
        const bytes = Buffer.concat(parts);
        const room = this.roomBytes - position;
        await file.write([bytes.subarray(0, Math.max(room, 0))], position);
        if (bytes.length > room) throw systemError("ENOSPC");
      },
      sync: async () => {
        this.#fail("sync");
        this.syncs += 1;
        await file.sync();
      },
    };
  }

  #fail(on: "write" | "sync" | "truncate"): void {
    if (this.fault?.on === on) throw systemError(this.fault.code);
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: the disk says no`), { code });
}

describe("a file journal on a disk", () => {
  it("syncs once for all that waits", async () => {
    const disk = new FaultyDisk();
    const journal = await openFileJournal(disk.options);
    const before = disk.syncs;
    await fill(journal, 200);
    expect(disk.syncs - before).toBeLessThanOrEqual(2);
    for (const seq of range(201, 203)) await fill(journal, seq, seq);
    expect(disk.syncs - before).toBeGreaterThanOrEqual(4);
    await journal.close();
  });

  it("shows nothing that is not synced", async () => {
    const disk = new FaultyDisk();
    const journal = await openFileJournal(disk.options);
    await fill(journal, 1);
    const gate = new Gate();
    disk.gate = gate.opened;
    const follower = new Follower(journal);
    await follower.hasRead(1);
    const append = journal.append(bytesOf("record 2"), 1);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 1, missing: 0 });
    expect(await journal.read(2)).toBeUndefined();
    gate.open();
    expect(await append).toEqual({ kind: "stored", seq: 2 });
    await follower.hasRead(2);
    await follower.stop();
    await journal.close();
  });

  it("answers full when the disk is, cuts off what was written in part, and goes on when there is room", async () => {
    const disk = new FaultyDisk();
    const journal = await openFileJournal(disk.options);
    await fill(journal, 2);
    const { size } = statSync(path);
    disk.roomBytes = size + 40;
    const outcomes = await Promise.all([journal.append(noise(100), 2), journal.append(noise(10), 3)]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["full", "full"]);
    expect(statSync(path).size).toBe(size);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 2, missing: 0 });
    disk.roomBytes = Number.POSITIVE_INFINITY;
    await fill(journal, 4, 3);
    await journal.close();
    expect(await reopened()).toEqual({ lines: toldOf(1, 4), recovered: undefined });
  });

  it("answers full at its own bound, and refuses what was behind it", async () => {
    const journal = await openFileJournal({ folder, bytesMax: endOf([8, 8, 8], 3) });
    await fill(journal, 2);
    const outcomes = await Promise.all([journal.append(noise(100), 2), journal.append(noise(1), 3)]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["full", "refused"]);
    await fill(journal, 3, 3);
    expect(await journal.usage()).toEqual({
      bytes: endOf([8, 8, 8], 3),
      bytesMax: endOf([8, 8, 8], 3),
      remedy: expect.stringMatching(/^give it more room.* with `--retain 1GiB` or more$/),
    });
    await journal.close();
  });

  it.each([
    { on: "sync", code: "EIO" },
    { on: "write", code: "EIO" },
  ] as const)("knows nothing any more after $code on $on, and writes nothing more", async (fault) => {
    const disk = new FaultyDisk();
    const journal = await openFileJournal(disk.options);
    await fill(journal, 1);
    disk.fault = fault;
    expect(await journal.append(bytesOf("record 2"), 1)).toMatchObject({ kind: "unknown" });
    disk.fault = undefined;
    expect(await journal.append(bytesOf("record 2"), 1)).toMatchObject({
      kind: "unknown",
      cause: { code: "WAGGLE_JOURNAL_DAMAGED" },
    });
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 1));
    await journal.close();
    const { lines } = await reopened();
    expect([toldOf(1, 1), toldOf(1, 2)]).toContainEqual(lines);
  });

  it("writes nothing when somebody else wrote to the file", async () => {
    const journal = await openFileJournal({ folder });
    await fill(journal, 1);
    writeFileSync(path, bytesOf("alien"), { flag: "a" });
    expect(await journal.append(bytesOf("record 2"), 1)).toMatchObject({ kind: "unknown" });
    await journal.close();
  });

  it("finds a record among many without reading them all", async () => {
    const journal = await openFileJournal({ folder });
    for (const seq of range(1, 20)) await journal.append(noise(100_000, seq), seq - 1);
    await journal.close();
    let bytesRead = 0;
    const counting: OpenJournalFile = async (file, access) => {
      const inner = await openJournalFile(file, access);
      return {
        size: () => inner.size(),
        write: (parts, position) => inner.write(parts, position),
        sync: () => inner.sync(),
        truncate: (size) => inner.truncate(size),
        close: () => inner.close(),
        read: async (target, position) => {
          const count = await inner.read(target, position);
          bytesRead += count;
          return count;
        },
      };
    };
    const again = await openFileJournal({ folder, openFile: counting });
    bytesRead = 0;
    expect(Buffer.compare((await again.read(15))?.bytes as Uint8Array, noise(100_000, 15))).toBe(0);
    expect(bytesRead).toBeLessThan(1_000_000);
    await again.close();
  });

  it("is copied by copying the file", async () => {
    await written(bytesOf("record 1"), bytesOf("record 2"));
    const copy = aFolder();
    cpSync(path, join(copy, "journal.log"));
    const journal = await openFileJournal({ folder: copy });
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 2));
    await journal.close();
    rmSync(copy, { recursive: true, force: true });
  });
});

const holderScript = fileURLToPath(new URL("file-journal-holder.ts", import.meta.url));

/** Another process that has the journal open, and appends to it until it is killed. */
async function aHolder() {
  const child = spawn(process.execPath, ["--import", "tsx", holderScript, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, "line")) as [string];
  return {
    first,
    pid: child.pid as number,
    stored: async () => Number((await once(lines, "line"))[0]),
    end: async (signal: NodeJS.Signals) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill(signal);
      await gone;
    },
  };
}

describe("a file journal and two processes", () => {
  it("lets the second one know who has it, and have it once that one is killed", async () => {
    const holder = await aHolder();
    try {
      expect(holder.first).toBe("open");
      const opening = openFileJournal({ folder });
      await expect(opening).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_LOCKED" });
      await expect(opening).rejects.toThrow(`process ${holder.pid} `);

      await holder.stored();
      const stored = await holder.stored();
      await holder.end("SIGKILL");
      const journal = await openFileJournal({ folder });
      expect((await journal.position()).lastSeq).toBeGreaterThanOrEqual(stored);
      const { lastSeq } = await journal.position();
      expect(await tell(journal.replay(1))).toEqual(toldOf(1, lastSeq));
      await journal.close();
    } finally {
      await holder.end("SIGKILL");
    }
  });

  it("is not taken from a process that is stopped and may wake", async () => {
    const holder = await aHolder();
    try {
      process.kill(holder.pid, "SIGSTOP");
      await expect(openFileJournal({ folder })).rejects.toThrow(`process ${holder.pid} `);
    } finally {
      await holder.end("SIGKILL");
    }
  });

  it("belongs to one of several that come at the same moment", async () => {
    const holders = await Promise.all([aHolder(), aHolder(), aHolder()]);
    try {
      const said = holders.map(({ first }) => first).sort();
      expect(said).toEqual(["WAGGLE_JOURNAL_LOCKED", "WAGGLE_JOURNAL_LOCKED", "open"]);
    } finally {
      await Promise.all(holders.map((holder) => holder.end("SIGKILL")));
    }
  });
});
