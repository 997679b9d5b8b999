// The journal in files of the local disk, for one coordinator at a time. Other processes may read the files meanwhile
// (file/reader.ts). Each segment is a folder `segments/<number>` with one append-only file, `records.log`.
//
// The one thing to know: a record is on the disk before its append is answered. A segment is created as `<number>.new`
// and then renamed; a segment is renamed to `<number>.removed` before the deletion. So a crash leaves a segment whole
// or not at all.

import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { assert } from "../assert.ts";
import { systemClock } from "../clock.ts";
import { JournalDamagedError, messageOf, UnreachableError, type WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Bell } from "./bell.ts";
import { type FolderLock, lockFolder } from "./file/folder-lock.ts";
import { GroupWriter, type WriterDeps } from "./file/group-writer.ts";
import {
  isNoSpace,
  type JournalFile,
  type OpenJournalFile,
  openJournalFile,
  reachingDisk,
  syncFolder,
  writeAll,
} from "./file/handle.ts";
import {
  FileSegmentReader,
  listSegments,
  refuseEarlierForm,
  segmentFolder,
  segmentPath,
  segmentsFolder,
} from "./file/reader.ts";
import { encodeHeader, HEADER_BYTES } from "./file/record.ts";
import { sizeOf } from "./file/scan.ts";
import { SegmentLog } from "./file/segment-log.ts";
import { readablePositions } from "./follow.ts";
import type {
  AppendOptions,
  AppendOutcome,
  Durability,
  Journal,
  JournalUsage,
  Segment,
  SegmentRecord,
} from "./journal.ts";
import { closedError, fullError } from "./journal-errors.ts";

export interface FileJournalOptions {
  /** Created if missing. Also holds `lock.json` while the journal is open. */
  readonly folder: string;
  /** Bound on the bytes of all segments; seals are stored beyond it. Default `limits.journalBytesMax`. */
  readonly bytesMax?: number;
  /** Default: the disk. Tests give one that fails. */
  readonly openFile?: OpenJournalFile;
}

/** A torn tail that opening cut off. A crash tears no acknowledged record; damage to the last write looks the same. */
export interface CutTail {
  readonly segment: number;
  readonly cutBytes: number;
  /** Position of the first record that was cut off. */
  readonly atPosition: number;
}

export interface FileJournal extends Journal {
  /** Torn tails that opening cut off, for the log. */
  readonly recovered: readonly CutTail[];
}

const REMEDY =
  "give it more room, where the disk has it: start its coordinator with a larger size for `--retain`";

/** @throws WaggleError WAGGLE_JOURNAL_LOCKED when another process has the journal open, WAGGLE_JOURNAL_SETTINGS when
 *  the folder holds a journal of an earlier form; JournalDamagedError; UnreachableError */
export async function openFileJournal(options: FileJournalOptions): Promise<FileJournal> {
  const { folder } = options;
  await refuseEarlierForm(folder);
  return await reachingDisk(async () => {
    await makeFolder(segmentsFolder(folder));
    const lock = await lockFolder(folder);
    const journal = new OpenFileJournal(options, lock);
    try {
      await journal.load();
      return journal;
    } catch (error) {
      await journal.close();
      throw error;
    }
  });
}

/** Makes a folder and missing parents, which then survive a power loss. */
async function makeFolder(path: string): Promise<void> {
  const folder = resolve(path);
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

interface OpenSegment {
  readonly log: SegmentLog;
  /** Undefined when the segment is sealed. */
  writer: GroupWriter | undefined;
}

class OpenFileJournal implements FileJournal {
  readonly sharable = false;
  readonly durability: Durability;
  readonly recovered: CutTail[] = [];
  readonly changes = new Bell();
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #openFile: OpenJournalFile;
  readonly #lock: FolderLock;
  readonly #segments = new Map<number, OpenSegment>();
  readonly #writerDeps: WriterDeps;
  #broken: WaggleError | undefined;
  /** Creations and removals, one after the other. */
  #changing: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: FileJournalOptions, lock: FolderLock) {
    const { folder, bytesMax = limits.journalBytesMax, openFile = openJournalFile } = options;
    this.durability = {
      class: "file",
      sentence: `Every batch is on the disk, in ${folder}, before it is answered; it is as safe as that disk.`,
    };
    this.#folder = folder;
    this.#bytesMax = bytesMax;
    this.#openFile = openFile;
    this.#lock = lock;
    this.#writerDeps = {
      changes: this.changes,
      room: () => bytesMax - this.#bytes,
      broken: () => this.#broken,
      breakDown: (path, cause) => this.#breakDown(path, cause),
    };
  }

  /** Reads the segments in the folder. A crash may have left a segment half created or half removed. */
  async load(): Promise<void> {
    const folder = segmentsFolder(this.#folder);
    for (const name of await readdir(folder))
      if (/^\d+\.(?:new|removed)$/.test(name)) await rm(join(folder, name), { recursive: true });
    await syncFolder(folder);
    for (const number of (await listSegments(this.#folder)) ?? []) await this.#loadSegment(number);
  }

  async list(): Promise<readonly number[]> {
    this.#requireOpen();
    return [...this.#segments.keys()].sort((one, other) => one - other);
  }

  segment(number: number): Segment {
    return new FileSegment(number, this);
  }

  create(number: number): Promise<void> {
    assert(Number.isSafeInteger(number) && number > 0, "segments are numbered from 1");
    return this.#change(async () => {
      if (this.#segments.has(number)) return;
      if (this.#bytes + HEADER_BYTES > this.#bytesMax)
        throw fullError(`the journal has used its ${this.#bytesMax} bytes`, REMEDY);
      const path = segmentPath(this.#folder, number);
      const file = await this.#createFile(path, number);
      const log = new SegmentLog(number, path, this.#openFile);
      this.#segments.set(number, { log, writer: new GroupWriter(log, file, this.#writerDeps) });
      this.changes.ring();
    });
  }

  remove(number: number): Promise<void> {
    return this.#change(async () => {
      const segment = this.#segments.get(number);
      if (segment === undefined) return;
      const folder = segmentFolder(this.#folder, number);
      await rename(folder, `${folder}.removed`);
      this.#segments.delete(number);
      this.changes.ring();
      await segment.writer?.stop({ kind: "missing" });
      await syncFolder(dirname(folder));
      await rm(`${folder}.removed`, { recursive: true });
    });
  }

  async usage(): Promise<JournalUsage> {
    this.#requireOpen();
    return { bytes: this.#bytes, bytesMax: this.#bytesMax, remedy: REMEDY };
  }

  /** A local disk does not reconnect: the listener is never called. */
  onReconnected(): () => void {
    return () => undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** @throws UnreachableError when closed */
  find(number: number): OpenSegment | undefined {
    this.#requireOpen();
    return this.#segments.get(number);
  }

  async #close(): Promise<void> {
    this.changes.ring();
    await Promise.all([...this.#segments.values()].map(({ writer }) => writer?.stop()));
    await this.#changing;
    await Promise.all([...this.#segments.values()].map(({ writer }) => writer?.stop()));
    await this.#lock.release();
  }

  async #loadSegment(number: number): Promise<void> {
    const log = new SegmentLog(number, segmentPath(this.#folder, number), this.#openFile);
    const file = await log.open("write");
    try {
      const cutBytes = (await log.load(file)) - sizeOf(log.fileEnd);
      if (cutBytes > 0) {
        await file.truncate(sizeOf(log.fileEnd));
        this.recovered.push({ segment: number, cutBytes, atPosition: log.last + 1 });
      }
      // An earlier process may have written a record without syncing it. From now on readers see the record.
      await file.datasync();
    } catch (error) {
      await file.close();
      throw error;
    }
    const writer = log.fileEnd.isSealed ? undefined : new GroupWriter(log, file, this.#writerDeps);
    if (writer === undefined) await file.close();
    this.#segments.set(number, { log, writer });
  }

  /** The synced file of a new segment. A call that fails removes the draft and touches no existing folder. */
  async #createFile(path: string, number: number): Promise<JournalFile> {
    const folder = dirname(path);
    const draft = `${folder}.new`;
    try {
      await mkdir(draft, { mode: 0o700 });
      const file = await this.#openFile(join(draft, basename(path)), "create");
      try {
        await writeAll(file, [encodeHeader(number)], 0);
        await file.datasync();
      } finally {
        await file.close();
      }
      await syncFolder(draft);
      await rename(draft, folder);
      await syncFolder(dirname(folder));
      return await this.#openFile(path, "write");
    } catch (cause) {
      await rm(draft, { recursive: true, force: true });
      throw isNoSpace(cause) ? fullError(`no room on the disk (${messageOf(cause)})`) : cause;
    }
  }

  #change(change: () => Promise<void>): Promise<void> {
    const changed = this.#changing.then(async () => {
      this.#requireOpen();
      if (this.#broken !== undefined)
        throw new UnreachableError(this.#broken.message, { cause: this.#broken });
      await reachingDisk(change);
    });
    this.#changing = changed.catch(() => undefined); // thrown to the caller
    return changed;
  }

  get #bytes(): number {
    let bytes = 0;
    for (const { log, writer } of this.#segments.values()) bytes += writer?.bytes ?? sizeOf(log.fileEnd);
    return bytes;
  }

  #breakDown(path: string, cause: unknown): WaggleError {
    this.#broken ??= new JournalDamagedError(
      `${path} cannot be written any more (${messageOf(cause)}); check the disk and start again: opening the journal ` +
        "finds out what it holds",
      { cause },
    );
    return this.#broken;
  }

  #requireOpen(): void {
    if (this.isClosed) throw closedError();
  }
}

class FileSegment extends FileSegmentReader implements Segment {
  readonly #journal: OpenFileJournal;

  constructor(number: number, journal: OpenFileJournal) {
    super(number, async () => journal.find(number)?.log);
    this.#journal = journal;
  }

  append(
    bytes: Uint8Array,
    expected: number,
    { isOpened = false }: AppendOptions = {},
  ): Promise<AppendOutcome> {
    if (this.#journal.isClosed) return Promise.resolve({ kind: "unknown", cause: closedError() });
    return this.#write({ kind: isOpened ? "opened" : "record", bytes, expected });
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<SegmentRecord> {
    const { number } = this;
    const { changes } = this.#journal;
    const view = () => (this.#journal.isClosed ? "closed" : this.#journal.find(number)?.log.view);
    const positions = readablePositions({ number, view, changes, clock: systemClock }, from, signal);
    let records: AsyncGenerator<SegmentRecord> | undefined;
    try {
      for await (const _ of positions) {
        records ??= this.#journal.find(number)?.log.records(from);
        const next = await records?.next();
        if (next?.done === false) yield next.value;
      }
    } finally {
      await records?.return(undefined);
    }
  }

  async seal(): Promise<boolean> {
    const segment = this.#journal.find(this.number);
    if (segment === undefined) return false;
    const outcome = await this.#write({ kind: "seal", bytes: new Uint8Array(), expected: undefined });
    if (outcome.kind === "missing") return false;
    if (outcome.kind === "full") throw this.#unsealable(outcome.message);
    if (outcome.kind === "unknown") throw this.#unsealable(messageOf(outcome.cause));
    await segment.writer?.stop({ kind: "sealed" });
    segment.writer = undefined;
    return true;
  }

  #unsealable(reason: string): UnreachableError {
    return new UnreachableError(`segment ${this.number} cannot be sealed: ${reason}`);
  }

  #write(write: Parameters<GroupWriter["write"]>[0]): Promise<AppendOutcome> {
    const segment = this.#journal.find(this.number);
    if (segment === undefined) return Promise.resolve({ kind: "missing" });
    return segment.writer?.write(write) ?? Promise.resolve({ kind: "sealed" });
  }
}
