// The segments of a file journal: when a new one is begun, what purging frees, what crashes and damage between and
// within them do, and how they are read without the lock.

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { checkFileJournal } from "../../src/journal/file/check.ts";
import { type OpenJournalFile, openJournalFile } from "../../src/journal/file/handle.ts";
import { openFileJournalReader } from "../../src/journal/file/reader.ts";
import { FILE_HEADER_BYTES, LINKED_HEADER_BYTES, RECORD_HEAD_BYTES } from "../../src/journal/file/record.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { flipBit } from "../support/flip-bit.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, noise, range, tell, toldOf } from "./records.ts";

/** A segment takes records until it has so much: two of `fill` in the first, one in a linked one. */
const segmentBytes = FILE_HEADER_BYTES + 2 * (RECORD_HEAD_BYTES + 8);

function aFolder(): string {
  return mkdtempSync(join(tmpdir(), "waggle-segments-"));
}

describeJournal("file in small segments", async () => {
  const folder = aFolder();
  return {
    open: () => openFileJournal({ folder, segmentBytes: 100 }),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

let folder: string;

beforeEach(() => {
  folder = aFolder();
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const open = (options: { bytesMax?: number; openFile?: OpenJournalFile } = {}) =>
  openFileJournal({ folder, segmentBytes, ...options });

/** One record a write, so that segments begin where they may. */
async function fillSlowly(journal: Journal, lastSeq: number, fromSeq = 1): Promise<void> {
  for (const seq of range(fromSeq, lastSeq)) await fill(journal, seq, seq);
}

/** A closed journal of many segments. */
async function written(lastSeq: number): Promise<void> {
  const journal = await open();
  await fillSlowly(journal, lastSeq);
  await journal.close();
}

const segments = () =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".log"))
    .sort(byFirstRecord);

function byFirstRecord(one: string, other: string): number {
  const firstOf = (name: string) => Number(/\d+/.exec(name)?.[0] ?? 1);
  return firstOf(one) - firstOf(other);
}

const pathOf = (firstSeq: number) =>
  join(folder, firstSeq === 1 ? "journal.log" : `journal-${String(firstSeq).padStart(12, "0")}.log`);

async function reopened() {
  const journal = await open();
  const { firstSeq, lastSeq } = await journal.position();
  const lines = lastSeq === 0 ? [] : await tell(journal.replay(firstSeq));
  await journal.close();
  return { lines, recovered: journal.recovered };
}

describe("the segments of a file journal", () => {
  it("go on from a journal that was one file", async () => {
    const before = await openFileJournal({ folder });
    await fillSlowly(before, 5);
    await before.close();
    expect(segments()).toEqual(["journal.log"]);
    const { size } = statSync(pathOf(1));
    const journal = await open();
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 5));
    await fillSlowly(journal, 7, 6);
    expect(segments()).toEqual(["journal.log", "journal-000000000006.log", "journal-000000000007.log"]);
    expect(statSync(pathOf(1)).size).toBe(size);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 7));
    await journal.close();
    expect(await reopened()).toEqual({ lines: toldOf(1, 7), recovered: undefined });
  });

  it("hold what one write holds, however large", async () => {
    const journal = await open();
    await fill(journal, 100);
    await fill(journal, 200, 101);
    expect(segments()).toEqual(["journal.log", "journal-000000000101.log"]);
    expect(statSync(pathOf(101)).mode & 0o777).toBe(0o600);
    await journal.close();
  });

  it("are read across, from anywhere and while they grow", async () => {
    const journal = await open();
    const follower = new Follower(journal, 2);
    await fillSlowly(journal, 20);
    expect(segments().length).toBeGreaterThan(5);
    for (const seq of range(1, 20)) {
      expect((await journal.read(seq))?.bytes).toEqual(bytesOf(`record ${seq}`));
      expect(await tell(journal.replay(seq))).toEqual(toldOf(seq, 20));
    }
    expect(await journal.read(21)).toBeUndefined();
    await follower.hasRead(19);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(2, 20));
    await journal.close();
  });

  it("are opened by reading the last one and the headers of the others", async () => {
    const big = openFileJournal({ folder, segmentBytes: 1_000_000 });
    const journal = await big;
    for (const seq of range(1, 50)) await journal.append(noise(100_000, seq), seq - 1);
    await journal.close();
    const files = segments().length;
    expect(files).toBeGreaterThanOrEqual(4);
    const last = statSync(pathOf(Number(/\d{12}/.exec(segments().at(-1) ?? "")?.[0]))).size;
    let bytesRead = 0;
    const counting: OpenJournalFile = async (path, access) => {
      const file = await openJournalFile(path, access);
      return {
        size: () => file.size(),
        write: (parts, position) => file.write(parts, position),
        sync: () => file.sync(),
        truncate: (size) => file.truncate(size),
        close: () => file.close(),
        read: async (target, position) => {
          const count = await file.read(target, position);
          bytesRead += count;
          return count;
        },
      };
    };
    const again = await openFileJournal({ folder, segmentBytes: 1_000_000, openFile: counting });
    expect(bytesRead).toBeLessThanOrEqual(last + files * LINKED_HEADER_BYTES);
    expect(Buffer.compare((await again.read(15))?.bytes as Uint8Array, noise(100_000, 15))).toBe(0);
    bytesRead = 0;
    await again.read(16);
    expect(bytesRead).toBeLessThan(1_000_000);
    await again.close();
  });

  it("keep their bound together, and have room again when some are purged", async () => {
    const bytesMax = 400;
    const journal = await open({ bytesMax });
    let seq = 0;
    while ((await journal.append(bytesOf(`record ${seq + 1}`), seq)).kind === "stored") seq += 1;
    const { bytes } = await journal.usage();
    expect(bytes).toBeLessThanOrEqual(bytesMax);
    expect(bytes).toBe(segments().reduce((sum, name) => sum + statSync(join(folder, name)).size, 0));
    await journal.purgeBelow(3);
    expect(await journal.append(bytesOf(`record ${seq + 1}`), seq)).toEqual({ kind: "stored", seq: seq + 1 });
    await journal.close();
  });
});

describe("purging a file journal", () => {
  it("frees the segments of which every record lies below, and keeps the rest", async () => {
    const journal = await open();
    await fillSlowly(journal, 9);
    const [, second = ""] = segments();
    const secondSeq = Number(/\d{12}/.exec(second)?.[0]);
    const before = await journal.usage();
    await journal.purgeBelow(secondSeq - 1);
    expect((await journal.position()).firstSeq).toBe(1);
    await journal.purgeBelow(secondSeq);
    expect(await journal.position()).toEqual({ firstSeq: secondSeq, lastSeq: 9, missing: 0 });
    expect(existsSync(pathOf(1))).toBe(false);
    expect((await journal.usage()).bytes).toBeLessThan(before.bytes);
    expect(await journal.read(1)).toBeUndefined();
    await expect(tell(journal.replay(1))).rejects.toThrow(`it begins at ${secondSeq}`);
    await expect(new Follower(journal, 1).ended).rejects.toThrow(JournalDamagedError);
    await journal.close();
    expect(await reopened()).toEqual({ lines: toldOf(secondSeq, 9), recovered: undefined });
  });

  it("keeps the segment of the last record, and a begun one goes on", async () => {
    const journal = await open();
    await fillSlowly(journal, 9);
    await journal.purgeBelow(1_000);
    const { firstSeq, lastSeq } = await journal.position();
    expect(segments()).toHaveLength(1);
    expect(firstSeq).toBeLessThanOrEqual(9);
    expect(await tell(journal.replay(firstSeq))).toEqual(toldOf(firstSeq, lastSeq));
    await fillSlowly(journal, 12, 10);
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(firstSeq, 12));
  });

  it("may be asked for several times at once, and while records are written", async () => {
    const journal = await open();
    await fillSlowly(journal, 30);
    const follower = new Follower(journal, 30);
    const purges = range(1, 30).map((seq) => journal.purgeBelow(seq));
    await Promise.all([...purges, fillSlowly(journal, 60, 31)]);
    const { firstSeq } = await journal.position();
    expect(firstSeq).toBeGreaterThan(20);
    expect(firstSeq).toBeLessThanOrEqual(30);
    await follower.hasRead(31);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(30, 60));
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(firstSeq, 60));
  });

  it("ends a replay that had not come so far, and says with what to begin", async () => {
    const journal = await open();
    await fillSlowly(journal, 20);
    const replaying = async () => {
      for await (const { seq } of journal.replay(1)) if (seq === 1) await journal.purgeBelow(15);
    };
    await expect(replaying()).rejects.toThrow("it begins at 15");
    await journal.close();
  });

  it("that was interrupted leaves no gap", async () => {
    await written(20);
    const [first = "", second = ""] = segments();
    for (const name of [first, second]) {
      rmSync(join(folder, name));
      const next = Number(/\d{12}/.exec(segments()[0] ?? "")?.[0]);
      expect((await reopened()).lines).toEqual(toldOf(next, 20));
    }
  });

  it("takes files that somebody else removed for purged", async () => {
    const journal = await open();
    await fillSlowly(journal, 9);
    rmSync(pathOf(1));
    await journal.purgeBelow(5);
    expect((await journal.position()).firstSeq).toBe(5);
    await journal.close();
  });

  it("says so where it cannot remove files, and does it when asked again", async () => {
    const journal = await open();
    await fillSlowly(journal, 9);
    renameSync(folder, `${folder}-away`);
    await expect(journal.purgeBelow(5)).rejects.toThrow(UnreachableError);
    expect((await journal.position()).firstSeq).toBe(1);
    renameSync(`${folder}-away`, folder);
    await journal.purgeBelow(5);
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(5, 9));
  });
});

describe("a file journal whose writer was killed between two segments", () => {
  let link: Buffer;
  let lastSeq: number;

  /** The last segment is begun and has one record, which is then taken away with it. */
  beforeEach(async () => {
    const journal = await open();
    lastSeq = 0;
    while (segments().length < 3) {
      lastSeq += 1;
      await fill(journal, lastSeq, lastSeq);
    }
    await journal.close();
    link = readFileSync(pathOf(lastSeq)).subarray(0, LINKED_HEADER_BYTES);
  });

  it("goes on in the one before, wherever the header of the new one ended", async () => {
    for (const size of range(0, LINKED_HEADER_BYTES - 1)) {
      writeFileSync(pathOf(lastSeq), link.subarray(0, size));
      expect(await reopened()).toEqual({ lines: toldOf(1, lastSeq - 1), recovered: undefined });
      expect(existsSync(pathOf(lastSeq))).toBe(false);
    }
    for (const size of [1, LINKED_HEADER_BYTES]) {
      writeFileSync(pathOf(lastSeq), Buffer.alloc(size));
      expect((await reopened()).lines).toEqual(toldOf(1, lastSeq - 1));
    }
    const journal = await open();
    await fillSlowly(journal, lastSeq + 3, lastSeq);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, lastSeq + 3));
    await journal.close();
  });

  it("goes on in the new one where that was begun", async () => {
    writeFileSync(pathOf(lastSeq), link);
    const journal = await open();
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: lastSeq - 1, missing: 0 });
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, lastSeq - 1));
    await journal.purgeBelow(1_000);
    const { firstSeq } = await journal.position();
    expect(firstSeq).toBeLessThan(lastSeq);
    expect(await tell(journal.replay(firstSeq))).toEqual(toldOf(firstSeq, lastSeq - 1));
    await fillSlowly(journal, lastSeq + 1, lastSeq);
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(firstSeq, lastSeq + 1));
  });

  it("loses no more than the torn record of the last one", async () => {
    const { size } = statSync(pathOf(lastSeq));
    for (const cut of range(1, size - LINKED_HEADER_BYTES - 1)) {
      writeFileSync(pathOf(lastSeq), Buffer.concat([link, noise(cut)]));
      expect(await reopened()).toEqual({
        lines: toldOf(1, lastSeq - 1),
        recovered: { cutBytes: cut, atSeq: lastSeq },
      });
    }
  });

  it("keeps all that was answered when it is killed at any moment", async () => {
    const holderScript = fileURLToPath(new URL("file-journal-holder.ts", import.meta.url));
    rmSync(folder, { recursive: true });
    let stored = 0;
    for (const records of [7, 23, 40]) {
      const child = spawn(process.execPath, ["--import", "tsx", holderScript, folder, "100"], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const gone = once(child, "exit");
      for await (const line of createInterface({ input: child.stdout })) {
        if (line !== "open") stored = Number(line);
        if (stored >= records) child.kill("SIGKILL");
      }
      await gone;
      const journal = await openFileJournal({ folder, segmentBytes: 100 });
      const { lastSeq: last } = await journal.position();
      expect(last).toBeGreaterThanOrEqual(stored);
      expect(await tell(journal.replay(1))).toEqual(toldOf(1, last));
      await journal.close();
    }
  });
});

describe("a file journal with a damaged segment", () => {
  beforeEach(() => written(20));

  const opening = () => expect(open()).rejects;

  it("is refused where one in the middle is missing", async () => {
    const [, second = ""] = segments();
    rmSync(join(folder, second));
    await opening().toThrow(JournalDamagedError);
    await opening().toThrow(/the file before journal-\d+\.log is missing, it began with record \d/);
  });

  it("is refused where an older one is longer or shorter than it was", async () => {
    const { size } = statSync(pathOf(1));
    truncateSync(pathOf(1), size - 1);
    await opening().toThrow(`journal.log is damaged: it has ${size - 1} bytes and had ${size}`);
    writeFileSync(pathOf(1), Buffer.concat([readFileSync(pathOf(1)), Buffer.alloc(5)]));
    await opening().toThrow(`it has ${size + 4} bytes`);
  });

  it("is refused where a header is damaged, or another one's", async () => {
    const [, second = "", third = ""] = segments();
    const whole = readFileSync(join(folder, second));
    flipBit(join(folder, second), 20);
    await opening().toThrow(`${second} cannot be read: its header is damaged`);
    writeFileSync(join(folder, second), whole);
    copyFileSync(join(folder, third), join(folder, second));
    await opening().toThrow("its name is another one's");
    writeFileSync(join(folder, second), "some other file");
    await opening().toThrow("it does not begin as a journal does");
    expect(readFileSync(join(folder, second), "utf8")).toBe("some other file");
  });

  it("is refused where a folder stands in the place of one, the first one or the last", async () => {
    for (const name of [segments()[0] ?? "", segments().at(-1) ?? ""]) {
      const away = join(folder, "away");
      renameSync(join(folder, name), away);
      mkdirSync(join(folder, name));
      await opening().toThrow(JournalDamagedError);
      await opening().toThrow(`${name} is a folder; restore the file from a backup or move it away`);
      await expect(checkFileJournal(folder)).rejects.toThrow(JournalDamagedError);
      rmdirSync(join(folder, name));
      renameSync(away, join(folder, name));
    }
  });

  it("is refused by its name where the disk does not let it be read, or be written", async () => {
    const last = segments().at(-1) ?? "";
    for (const refused of ["read", "write"]) {
      const openFile: OpenJournalFile = async (path, access) => {
        if (path.endsWith(last) && access === refused)
          throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES", syscall: "open" });
        return await openJournalFile(path, access);
      };
      await expect(open({ openFile })).rejects.toThrow(UnreachableError);
      await expect(open({ openFile })).rejects.toThrow(
        `${last} does not work (EACCES: permission denied); see to the disk`,
      );
    }
    await (await open()).close();
  });

  it("opens where a record of an older one rots, and says so to whoever reads it", async () => {
    const [, second = ""] = segments();
    const secondSeq = Number(/\d{12}/.exec(second)?.[0]);
    flipBit(join(folder, second), LINKED_HEADER_BYTES + RECORD_HEAD_BYTES);
    const journal = await open();
    const sentence = `${second} is damaged: record ${secondSeq} at byte ${LINKED_HEADER_BYTES}`;
    await expect(tell(journal.replay(1))).rejects.toThrow(sentence);
    await expect(journal.read(secondSeq)).rejects.toThrow(JournalDamagedError);
    expect(await tell(journal.replay(secondSeq + 1))).toEqual(toldOf(secondSeq + 1, 20));
    await fillSlowly(journal, 21, 21);
    await journal.close();
    await expect(checkFileJournal(folder)).rejects.toThrow(JournalDamagedError);
  });

  it("is found out by who reads all of it", async () => {
    expect(await checkFileJournal(folder)).toMatchObject({
      files: segments().length,
      records: 20,
      tailBytes: 0,
    });
    writeFileSync(join(folder, segments().at(-1) ?? ""), "torn", { flag: "a" });
    expect(await checkFileJournal(folder)).toMatchObject({ records: 20, tailBytes: 4 });
    // The end of an older one is damaged: nothing behind it in its file says so, the next file does.
    flipBit(pathOf(1), statSync(pathOf(1)).size - 1);
    await expect(checkFileJournal(folder)).rejects.toThrow(
      /journal\.log is damaged: it has no whole record behind 1/,
    );
  });
});

describe("a file journal on a disk that fails between two segments", () => {
  /** Fails what is written to files that begin with a link. */
  function failing(code: string, on: "write" | "sync") {
    const disk = {
      isFailing: true,
      openFile: (async (path, access) => {
        const file = await openJournalFile(path, access);
        const isLinked = !path.endsWith("journal.log");
        const fail = (at: string) => {
          if (disk.isFailing && isLinked && at === on)
            throw Object.assign(new Error(`${code}: no`), { code });
        };
        return {
          size: () => file.size(),
          read: (target, position) => file.read(target, position),
          truncate: (size) => file.truncate(size),
          close: () => file.close(),
          write: async (parts, position) => {
            fail("write");
            await file.write(parts, position);
          },
          sync: async () => {
            fail("sync");
            await file.sync();
          },
        };
      }) satisfies OpenJournalFile,
    };
    return disk;
  }

  it("is full where it has no room for a new one, and goes on when it has", async () => {
    const disk = failing("ENOSPC", "write");
    const journal = await open({ openFile: disk.openFile });
    await fillSlowly(journal, 2);
    expect(await journal.append(bytesOf("record 3"), 2)).toMatchObject({ kind: "full" });
    expect(segments()).toEqual(["journal.log"]);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 2, missing: 0 });
    disk.isFailing = false;
    await fillSlowly(journal, 5, 3);
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(1, 5));
  });

  it("knows nothing any more where a new one cannot be synced, and opens again", async () => {
    const disk = failing("EIO", "sync");
    const journal = await open({ openFile: disk.openFile });
    await fillSlowly(journal, 2);
    expect(await journal.append(bytesOf("record 3"), 2)).toMatchObject({ kind: "unknown" });
    disk.isFailing = false;
    expect(await journal.append(bytesOf("record 3"), 2)).toMatchObject({
      kind: "unknown",
      cause: { code: "WAGGLE_JOURNAL_DAMAGED" },
    });
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 2));
    await journal.close();
    expect((await reopened()).lines).toEqual(toldOf(1, 2));
  });

  it("writes no new one when somebody else wrote to the last", async () => {
    const journal = await open();
    await fillSlowly(journal, 2);
    writeFileSync(pathOf(1), "alien", { flag: "a" });
    expect(await journal.append(bytesOf("record 3"), 2)).toMatchObject({ kind: "unknown" });
    expect(segments()).toEqual(["journal.log"]);
    await journal.close();
  });
});

describe("reading a file journal that another one holds", () => {
  it("goes up to the record that was named, though the writer goes on", async () => {
    const journal = await open();
    await fillSlowly(journal, 11);
    const reader = await openFileJournalReader({ folder, lastSeq: 10 });
    await fillSlowly(journal, 30, 12);
    expect(await reader.position()).toEqual({ firstSeq: 1, lastSeq: 10, missing: 0 });
    expect(await tell(reader.replay(4))).toEqual(toldOf(4, 10));
    expect(await tell(reader.replay(11))).toEqual([]);
    expect((await reader.read(10))?.bytes).toEqual(bytesOf("record 10"));
    expect(await reader.read(11)).toBeUndefined();
    await reader.close();
    await expect(reader.read(1)).rejects.toThrow(UnreachableError);
    await expect(tell(reader.replay(1))).rejects.toThrow(UnreachableError);
    await journal.close();
  });

  it("changes nothing, not even a torn tail", async () => {
    await written(5);
    const path = join(folder, segments().at(-1) ?? "");
    writeFileSync(path, "torn", { flag: "a" });
    writeFileSync(pathOf(99), "");
    const reader = await openFileJournalReader({ folder, lastSeq: 5 });
    expect(await tell(reader.replay(1))).toEqual(toldOf(1, 5));
    await reader.close();
    expect(readFileSync(path).subarray(-4).toString()).toBe("torn");
    expect(existsSync(pathOf(99))).toBe(true);
  });

  it("ends with an error when what it was to read is purged", async () => {
    const journal = await open();
    await fillSlowly(journal, 20);
    const reader = await openFileJournalReader({ folder, lastSeq: 20 });
    await journal.purgeBelow(15);
    await expect(tell(reader.replay(1))).rejects.toThrow("journal.log is gone");
    expect(await tell(reader.replay(15))).toEqual(toldOf(15, 20));
    const later = await openFileJournalReader({ folder, lastSeq: 20 });
    expect(await later.position()).toEqual(await journal.position());
    await journal.close();
  });

  it("says so when there is none", async () => {
    await expect(openFileJournalReader({ folder, lastSeq: 0 })).rejects.toThrow("there is no journal in");
  });
});
