// The journal in files: the conformance suite, the contents of the folder, and several processes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { openFileJournalReader } from "../../src/journal/file/reader.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { JournalReader } from "../../src/journal/journal.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, fill, filled, linesOf, noise } from "./records.ts";

function aFolder(): string {
  return mkdtempSync(join(tmpdir(), "waggle-chain-"));
}

describeJournal("file", async (options) => {
  const folder = aFolder();
  return {
    open: () => openFileJournal({ folder, ...options }),
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

async function linesIn(journal: JournalReader): Promise<Record<number, readonly string[]>> {
  const lines: Record<number, readonly string[]> = {};
  for (const number of await journal.list()) lines[number] = await linesOf(journal.segment(number).replay(1));
  return lines;
}

describe("the folder of a file journal", () => {
  it("has a folder for each segment and the lock while it is open", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await journal.create(12);
    await journal.remove(1);
    expect(readdirSync(folder).sort()).toEqual(["lock.json", "segments"]);
    expect(readdirSync(join(folder, "segments"))).toEqual(["12"]);
    expect(readdirSync(join(folder, "segments", "12"))).toEqual(["records.log"]);
    await journal.close();
    expect(readdirSync(folder)).toEqual(["segments"]);
  });

  it("can be read by its user only", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await journal.close();
    for (const path of ["segments", "segments/1", "segments/1/records.log"])
      expect(statSync(join(folder, path)).mode & 0o077).toBe(0);
  });

  it("loses a segment left half created or half removed by a crash", async () => {
    const journal = await openFileJournal({ folder });
    for (const number of [1, 2, 3]) {
      await journal.create(number);
      await fill(journal.segment(number), 2);
    }
    await journal.close();
    const segments = join(folder, "segments");
    renameSync(join(segments, "2"), join(segments, "2.removed"));
    renameSync(join(segments, "3"), join(segments, "3.new"));
    mkdirSync(join(segments, "4.new"));
    writeFileSync(join(segments, "notes.txt"), "of the user");
    const again = await openFileJournal({ folder });
    expect(await linesIn(again)).toEqual({ 1: filled(1, 2) });
    expect(readdirSync(segments).sort()).toEqual(["1", "notes.txt"]);
    await again.create(3);
    expect(await linesIn(again)).toEqual({ 1: filled(1, 2), 3: [] });
    await again.close();
  });

  it("keeps files of a different process in the place of a new segment", async () => {
    const journal = await openFileJournal({ folder });
    const foreign = join(folder, "segments", "1");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "records.log"), "of another process");
    await expect(journal.create(1)).rejects.toThrow(UnreachableError);
    expect(readdirSync(join(folder, "segments"))).toEqual(["1"]);
    expect(readFileSync(join(foreign, "records.log"), "utf8")).toBe("of another process");
    await journal.close();
  });

  it.each(["journal.log", "journal-000000004711.log"])(
    "is refused with an earlier version's %s, and keeps it",
    async (name) => {
      writeFileSync(join(folder, name), "WAGGLEJL");
      for (const open of [() => openFileJournal({ folder }), () => openFileJournalReader(folder)])
        await expect(open()).rejects.toMatchObject({
          code: "WAGGLE_JOURNAL_SETTINGS",
          message:
            `${join(folder, name)} holds a journal of an earlier version of waggle, which this version cannot read; ` +
            "finish the tasks with that version, then move the folder away, or use a different swarm name",
        });
      expect(readdirSync(folder)).toEqual([name]);
    },
  );

  it("is named in the error if not writable", async () => {
    const file = join(folder, "a-file");
    writeFileSync(file, "");
    await expect(openFileJournal({ folder: file })).rejects.toThrow(UnreachableError);
    await expect(openFileJournal({ folder: file })).rejects.toThrow(/a-file.*check the disk/);
  });

  it("is a valid journal when copied", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await fill(journal.segment(1), 3);
    await journal.segment(1).seal();
    await journal.create(2);
    await journal.close();
    const copy = aFolder();
    cpSync(folder, copy, { recursive: true });
    const copied = await openFileJournal({ folder: copy });
    expect(await linesIn(copied)).toEqual({ 1: filled(1, 3), 2: [] });
    expect(await copied.segment(1).end()).toMatchObject({ isSealed: true });
    await copied.close();
    rmSync(copy, { recursive: true, force: true });
  });

  it("is bounded over all segments; a seal is stored beyond the bound", async () => {
    const bytesMax = 10_000;
    const journal = await openFileJournal({ folder, bytesMax });
    for (const number of [1, 2]) {
      await journal.create(number);
      expect(await journal.segment(number).append(noise(4_500), 0)).toEqual({ kind: "stored" });
    }
    expect(await journal.segment(2).append(noise(4_500), 1)).toMatchObject({ kind: "full" });
    const outcomes = await Promise.all([
      journal.segment(1).append(noise(600), 1),
      journal.segment(2).append(noise(600), 1),
    ]);
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["full", "stored"]);
    const { bytes } = await journal.usage();
    const { room } = { room: bytesMax - bytes };
    const { position = 0 } = (await journal.segment(1).end()) ?? {};
    expect(await journal.segment(1).append(noise(room - 28), position)).toEqual({ kind: "stored" });
    await expect(journal.create(3)).rejects.toMatchObject({
      code: "WAGGLE_JOURNAL_FULL",
      message: expect.stringContaining("`--retain`"),
    });
    expect(await journal.segment(1).seal()).toBe(true);
    expect(await journal.usage()).toMatchObject({
      bytesMax,
      remedy: expect.stringMatching(/^give it more room.*`--retain`$/),
    });
    await journal.remove(1);
    expect(await journal.segment(2).append(noise(4_500), 1)).toMatchObject({ kind: "stored" });
    await journal.close();
  });

  it("refuses a record larger than a reader accepts", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    const outcome = await journal.segment(1).append(new Uint8Array(8 * 1024 ** 2 + 1), 0);
    expect(outcome).toEqual({ kind: "full", message: expect.stringContaining("8388609 bytes exceeds") });
    await journal.close();
  });
});

describe("the reader of a file journal", () => {
  it("reads the records of a different handle, and takes no lock", async () => {
    const journal = await openFileJournal({ folder });
    const reader = await openFileJournalReader(folder);
    expect(await reader.list()).toEqual([]);
    expect(await reader.segment(1).end()).toBeUndefined();
    await expect(linesOf(reader.segment(1).replay(1))).rejects.toThrow("no segment 1");
    await journal.create(1);
    const segment = reader.segment(1);
    expect(await segment.end()).toMatchObject({ position: 0, isSealed: false });
    await fill(journal.segment(1), 3);
    await journal.segment(1).append(bytesOf("opened"), 3, { isOpened: true });
    expect(await linesOf(segment.replay(2, { until: 3 }))).toEqual(filled(2, 3));
    expect(await segment.read(3)).toEqual({ position: 3, bytes: bytesOf("record 3") });
    expect(await segment.read(5)).toBeUndefined();
    expect(await segment.opened()).toEqual({ position: 4, bytes: bytesOf("opened") });
    await journal.segment(1).seal();
    await journal.create(2);
    expect(await segment.end()).toMatchObject({ position: 4, isSealed: true });
    expect(await segment.opened()).toEqual({ position: 4, bytes: bytesOf("opened") });
    expect(await reader.list()).toEqual([1, 2]);
    await journal.remove(1);
    expect(await segment.end()).toBeUndefined();
    expect(await reader.list()).toEqual([2]);
    await reader.close();
    await expect(reader.list()).rejects.toThrow(UnreachableError);
    await expect(segment.end()).rejects.toThrow(UnreachableError);
    await journal.close();
  });

  it("changes nothing, even with a torn tail after a crash", async () => {
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    await fill(journal.segment(1), 2);
    await journal.close();
    const path = join(folder, "segments", "1", "records.log");
    writeFileSync(path, bytesOf("torn"), { flag: "a" });
    const { size } = statSync(path);
    const reader = await openFileJournalReader(folder);
    expect(await linesIn(reader)).toEqual({ 1: filled(1, 2) });
    expect(statSync(path).size).toBe(size);
    expect(readdirSync(folder)).toEqual(["segments"]);
  });

  it("says that a folder holds no journal", async () => {
    await expect(openFileJournalReader(folder)).rejects.toThrow(`there is no journal in ${folder}`);
    await expect(openFileJournalReader(join(folder, "nowhere"))).rejects.toThrow("there is no journal");
    expect(existsSync(join(folder, "nowhere"))).toBe(false);
  });
});

const writerScript = fileURLToPath(new URL("file-writer.ts", import.meta.url));

/** A child process that writes the journal until the test kills the process. */
async function aWriter() {
  const child = spawn(process.execPath, ["--import", "tsx", writerScript, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const said: string[] = [];
  lines.on("line", (line) => said.push(line));
  await once(lines, "line");
  return {
    said,
    pid: child.pid as number,
    hasSaid: async (count: number) => {
      while (said.length < count) await once(lines, "line");
    },
    end: async (signal: NodeJS.Signals) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "close");
      child.kill(signal);
      await gone;
    },
  };
}

describe("a file journal and several processes", () => {
  it("keeps every acknowledged record and seal of a process that is killed, again and again", async () => {
    const acknowledged = new Map<number, number>();
    for (let round = 1; round <= 4; round++) {
      const writer = await aWriter();
      try {
        expect(writer.said[0]).toBe("open");
        await writer.hasSaid(20 * round + round * round);
        const reader = await openFileJournalReader(folder);
        for (const [number, lines] of Object.entries(await linesIn(reader)))
          expect(lines, `segment ${number}, read beside its writer`).toEqual(filled(1, lines.length));
        await writer.end("SIGKILL");
      } finally {
        await writer.end("SIGKILL");
      }
      for (const line of writer.said.slice(1)) {
        const [number = 0, position = 0] = line.split(" ").map(Number);
        acknowledged.set(number, position);
      }
      const journal = await openFileJournal({ folder });
      const newest = Math.max(...acknowledged.keys());
      for (const [number, position] of acknowledged) {
        const end = await journal.segment(number).end();
        expect(end?.position).toBeGreaterThanOrEqual(position);
        if (number < newest) expect(end).toMatchObject({ position: 25, isSealed: true, missing: 0 });
        expect(await linesOf(journal.segment(number).replay(1))).toEqual(filled(1, end?.position ?? 0));
      }
      await journal.close();
    }
  }, 60_000);

  it("is open in one process at a time, and free when that process is killed", async () => {
    const writer = await aWriter();
    try {
      expect(writer.said[0]).toBe("open");
      const opening = openFileJournal({ folder });
      await expect(opening).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_LOCKED" });
      await expect(opening).rejects.toThrow(`process ${writer.pid} `);
      process.kill(writer.pid, "SIGSTOP");
      await expect(openFileJournal({ folder })).rejects.toThrow(`process ${writer.pid} `);
      await writer.end("SIGKILL");
      await (await openFileJournal({ folder })).close();
    } finally {
      await writer.end("SIGKILL");
    }
  });

  it("is opened by one of several processes started together", async () => {
    const writers = await Promise.all([aWriter(), aWriter(), aWriter()]);
    try {
      const said = writers.map((writer) => writer.said[0]).sort();
      expect(said).toEqual(["WAGGLE_JOURNAL_LOCKED", "WAGGLE_JOURNAL_LOCKED", "open"]);
    } finally {
      await Promise.all(writers.map((writer) => writer.end("SIGKILL")));
    }
  });
});
