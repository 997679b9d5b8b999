// The journal in a file of this machine: `journal.log` in a folder, for one coordinator at a time.
//
// Appends that overlap are written in the order of the calls, with one write and one sync for all that wait
// (group commit); nothing is answered, read or followed before it is synced. So the end of what counts,
// `#end`, lies behind the last synced record, and what the file holds beyond it is torn or under way.
//
// Failures: no room → `full`, and what was written of it is cut off again. A sync that fails leaves in doubt
// what the disk holds, so nothing is written after it: appends end `unknown` until the journal is opened anew.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { JournalDamagedError, type WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Bell } from "./bell.ts";
import { closedError } from "./faults.ts";
import { FileCursor } from "./file-cursor.ts";
import { type Append, cutGroup, type Group } from "./file-group.ts";
import { isNoSpace, type JournalFile, openJournalFile } from "./file-handle.ts";
import type { FileIndex } from "./file-index.ts";
import { encodeFileHeader, FILE_HEADER_BYTES } from "./file-record.ts";
import { type Scan, scanJournalFile } from "./file-scan.ts";
import { type FolderLock, lockFolder } from "./folder-lock.ts";
import type {
  AppendOutcome,
  Durability,
  Journal,
  JournalPosition,
  JournalRecord,
  JournalUsage,
} from "./journal.ts";

export interface FileJournalOptions {
  /** Created if missing. Holds `journal.log` and, while open, `lock.json`. */
  readonly folder: string;
  /** Beyond it appends are answered `full`. Default `limits.journalBytesMax`. */
  readonly bytesMax?: number;
  /** Default: the disk. Tests give one that fails. */
  readonly openFile?: (path: string) => Promise<JournalFile>;
}

/** What a crash left behind and opening cut off: never anything that had been acknowledged. */
export interface Recovery {
  readonly cutBytes: number;
  /** The record that was being written, or the first of several. */
  readonly atSeq: number;
}

export interface FileJournal extends Journal {
  /** Undefined when the file ended with a whole record. To be told to people. */
  readonly recovered: Recovery | undefined;
}

/** @throws WaggleError WAGGLE_JOURNAL_LOCKED when another process has it open; JournalDamagedError */
export async function openFileJournal(options: FileJournalOptions): Promise<FileJournal> {
  const { folder, bytesMax = limits.journalBytesMax, openFile = openJournalFile } = options;
  const path = join(folder, "journal.log");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const lock = await lockFolder(folder);
  let file: JournalFile | undefined;
  try {
    file = await openFile(path);
    const { scan, recovered } = await recover(file);
    return new OpenFileJournal({ file, lock, path, bytesMax, scan, recovered });
  } catch (error) {
    await file?.close();
    await lock.release();
    throw error;
  }
}

async function recover(file: JournalFile): Promise<{ scan: Scan; recovered: Recovery | undefined }> {
  await beginFile(file);
  // What an earlier process wrote and died before syncing is read as stored from now on, so it must be.
  await file.sync();
  const size = await file.size();
  const scan = await scanJournalFile(file, size);
  if (scan.end === size) return { scan, recovered: undefined };
  await file.truncate(scan.end);
  await file.sync();
  return { scan, recovered: { cutBytes: size - scan.end, atSeq: scan.lastSeq + 1 } };
}

/** Writes the header, also where a crash left only a part of it. */
async function beginFile(file: JournalFile): Promise<void> {
  const size = await file.size();
  if (size > FILE_HEADER_BYTES) return;
  const header = encodeFileHeader();
  const present = Buffer.alloc(size);
  await file.read(present, 0);
  if (present.equals(header)) return;
  const isTorn = present.equals(header.subarray(0, size)) || present.every((byte) => byte === 0);
  if (!isTorn) throw new JournalDamagedError("journal.log holds something else than a journal; move it away");
  await file.write([header], 0);
}

interface Opened {
  readonly file: JournalFile;
  readonly lock: FolderLock;
  readonly path: string;
  readonly bytesMax: number;
  readonly scan: Scan;
  readonly recovered: Recovery | undefined;
}

class OpenFileJournal implements FileJournal {
  readonly sharable = false;
  readonly durability: Durability;
  readonly recovered: Recovery | undefined;
  readonly #file: JournalFile;
  readonly #lock: FolderLock;
  readonly #bytesMax: number;
  readonly #index: FileIndex;
  readonly #changes = new Bell();
  #lastSeq: number;
  #end: number;
  #waiting: Append[] = [];
  #underWay: readonly Append[] = [];
  #writing: Promise<void> | undefined;
  #broken: WaggleError | undefined;
  #closing: Promise<void> | undefined;

  constructor({ file, lock, path, bytesMax, scan, recovered }: Opened) {
    this.durability = {
      class: "file",
      sentence: `Every batch is on the disk, in ${path}, before it is answered; it is as safe as that disk.`,
    };
    this.recovered = recovered;
    this.#file = file;
    this.#lock = lock;
    this.#bytesMax = bytesMax;
    this.#index = scan.index;
    this.#lastSeq = scan.lastSeq;
    this.#end = scan.end;
  }

  async position(): Promise<JournalPosition> {
    this.#requireOpen();
    return { firstSeq: Math.min(1, this.#lastSeq), lastSeq: this.#lastSeq, missing: 0 };
  }

  append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome> {
    const refusal = this.#closing === undefined ? this.#broken : closedError();
    if (refusal !== undefined) return Promise.resolve({ kind: "unknown", cause: refusal });
    return new Promise((settle) => {
      this.#waiting.push({ bytes, expectedSeq, settle });
      this.#writing ??= this.#writeGroups();
    });
  }

  async read(seq: number): Promise<JournalRecord | undefined> {
    const cursor = await this.#cursorAt(seq, limits.journalIndexSpacingBytes);
    return cursor === undefined ? undefined : await cursor.next(this.#end);
  }

  async *replay(fromSeq: number): AsyncGenerator<JournalRecord> {
    const lastSeq = this.#lastSeq;
    const cursor = await this.#cursorAt(fromSeq, limits.journalReadWindowBytes);
    while (cursor !== undefined && cursor.seq <= lastSeq) {
      this.#requireOpen();
      yield await cursor.next(this.#end);
    }
  }

  async *follow(fromSeq: number, signal: AbortSignal): AsyncGenerator<JournalRecord> {
    const isOver = () => signal.aborted || this.#closing !== undefined;
    let cursor: FileCursor | undefined;
    while (!isOver()) {
      if ((cursor?.seq ?? fromSeq) > this.#lastSeq) {
        await this.#changes.wait(signal);
        continue;
      }
      cursor ??= await this.#cursorAt(fromSeq, limits.journalReadWindowBytes);
      if (cursor !== undefined && !isOver()) yield await cursor.next(this.#end);
    }
  }

  /** One file is freed as a whole or not at all: it keeps everything. */
  async purgeBelow(): Promise<void> {
    this.#requireOpen();
  }

  async usage(): Promise<JournalUsage> {
    this.#requireOpen();
    return { bytes: this.#end, bytesMax: this.#bytesMax };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const outcome: AppendOutcome = { kind: "unknown", cause: closedError() };
    for (const { settle } of [...this.#underWay, ...this.#waiting]) settle(outcome);
    this.#waiting = [];
    this.#changes.ring();
    await this.#writing;
    await this.#file.close();
    await this.#lock.release();
  }

  // --- writing -----------------------------------------------------------------------------------------

  async #writeGroups(): Promise<void> {
    await Promise.resolve(); // appends of one turn share the first write
    while (this.#waiting.length > 0) {
      this.#underWay = this.#waiting;
      this.#waiting = [];
      const room = { lastSeq: this.#lastSeq, end: this.#end, bytesMax: this.#bytesMax };
      const group = cutGroup(this.#underWay, room);
      const fault = await this.#write(group);
      for (const [append, outcome] of group.answers) {
        append.settle(outcome.kind === "stored" && fault !== undefined ? fault : outcome);
      }
      this.#underWay = [];
    }
    this.#writing = undefined;
  }

  /** The outcome of the whole group if it failed. */
  async #write(group: Group): Promise<AppendOutcome | undefined> {
    if (this.#broken !== undefined) return { kind: "unknown", cause: this.#broken };
    if (group.places.length === 0) return undefined;
    try {
      const size = await this.#file.size();
      if (size !== this.#end) throw new ForeignWriteError(size, this.#end);
      await this.#file.write(group.parts, this.#end);
      await this.#file.sync();
    } catch (cause) {
      return await this.#undo(cause);
    }
    for (const place of group.places) this.#index.add(place);
    this.#lastSeq += group.places.length;
    this.#end = group.end;
    this.#changes.ring();
    return undefined;
  }

  async #undo(cause: unknown): Promise<AppendOutcome> {
    if (cause instanceof ForeignWriteError || !isNoSpace(cause)) return this.#break(cause);
    try {
      await this.#file.truncate(this.#end);
      await this.#file.sync();
    } catch (another) {
      return this.#break(another);
    }
    return { kind: "full", message: `no room on the disk: ${(cause as Error).message}` };
  }

  #break(cause: unknown): AppendOutcome {
    this.#broken = new JournalDamagedError(
      `journal.log cannot be written any more (${cause instanceof Error ? cause.message : String(cause)}); ` +
        "see to the disk and start again: opening it finds out what it holds",
      { cause },
    );
    return { kind: "unknown", cause: this.#broken };
  }

  // --- reading -----------------------------------------------------------------------------------------

  /** Before a record, or undefined where none is stored. */
  async #cursorAt(seq: number, windowBytes: number): Promise<FileCursor | undefined> {
    this.#requireOpen();
    const known = this.#index.floor(seq);
    if (known === undefined || seq > this.#lastSeq) return undefined;
    const cursor = new FileCursor(this.#file, windowBytes, known);
    await cursor.skipTo(seq, this.#end);
    return cursor;
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }
}

/** Somebody wrote into a file that is ours alone. */
class ForeignWriteError extends Error {
  constructor(size: number, expected: number) {
    super(`it has ${size} bytes where this process left ${expected}: another one writes to it`);
  }
}
