// The journal in files of this machine: segments in a folder, for one coordinator at a time. Others may read it
// meanwhile (file/reader.ts).
//
// Appends that overlap are written in the order of the calls, with one write and one sync for all that wait
// (group commit); nothing is answered, read or followed before it is synced. So the end of what counts, the last
// segment's `end`, lies behind the last synced record, and what the file holds beyond it is torn or under way. A
// segment that is large enough is sealed: nothing is written to it any more, and the next group begins a new one.
//
// Failures: no room → `full`, and what was written of it is cut off again. A sync that fails leaves in doubt
// what the disk holds, so nothing is written after it: appends end `unknown` until the journal is opened anew.

import { mkdir } from "node:fs/promises";
import { JournalDamagedError, messageOf, UnreachableError, type WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Bell } from "./bell.ts";
import { type FolderLock, lockFolder } from "./file/folder-lock.ts";
import { type Append, cutGroup, type Group } from "./file/group.ts";
import { isNoSpace, type JournalFile, type OpenJournalFile, openJournalFile } from "./file/handle.ts";
import { type OpenedSegments, openSegments, type Recovery } from "./file/opening.ts";
import { FileJournalReader } from "./file/reader.ts";
import { LINKED_HEADER_BYTES } from "./file/record.ts";
import { createSegment } from "./file/segment.ts";
import type { FileSegments, SegmentsCursor } from "./file/segments.ts";
import type {
  AppendOutcome,
  Durability,
  Journal,
  JournalPosition,
  JournalRecord,
  JournalUsage,
} from "./journal.ts";
import { closedError } from "./journal-errors.ts";
import { keptBytesMax } from "./kept-room.ts";

export interface FileJournalOptions {
  /** Created if missing. Holds the segments (file/segment.ts) and, while open, `lock.json`. */
  readonly folder: string;
  /** Beyond it appends are answered `full`. Default `limits.journalBytesMax`. */
  readonly bytesMax?: number;
  /** A segment of this size is followed by a new one. Default `limits.journalSegmentBytes`. */
  readonly segmentBytes?: number;
  /** Default: the disk. Tests give one that fails. */
  readonly openFile?: OpenJournalFile;
}

export interface FileJournal extends Journal {
  /** Undefined when the last file ended with a whole record. To be told to people. */
  readonly recovered: Recovery | undefined;
}

/** A clause: the room of a file journal follows from how much of it is to be kept. */
function remedyOf(bytesMax: number): string {
  const sizeGiB = Math.ceil(keptBytesMax(2 * bytesMax) / 1024 ** 3);
  return `give it more room, where the disk has it: start its coordinator with \`--retain ${sizeGiB}GiB\` or more`;
}

/** @throws WaggleError WAGGLE_JOURNAL_LOCKED when another process has it open; JournalDamagedError */
export async function openFileJournal(options: FileJournalOptions): Promise<FileJournal> {
  const { folder, openFile = openJournalFile } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const lock = await lockFolder(folder);
  try {
    return new OpenFileJournal(options, lock, await openSegments(folder, openFile));
  } catch (error) {
    await lock.release();
    throw error;
  }
}

class OpenFileJournal implements FileJournal {
  readonly sharable = false;
  readonly durability: Durability;
  readonly recovered: Recovery | undefined;
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #segmentBytes: number;
  readonly #openFile: OpenJournalFile;
  readonly #lock: FolderLock;
  readonly #segments: FileSegments;
  readonly #reader: FileJournalReader;
  readonly #changes = new Bell();
  /** The last segment's. */
  #file: JournalFile;
  #lastSeq: number;
  #waiting: Append[] = [];
  #underWay: readonly Append[] = [];
  #writing: Promise<void> | undefined;
  #purging: Promise<void> = Promise.resolve();
  #broken: WaggleError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: FileJournalOptions, lock: FolderLock, opened: OpenedSegments) {
    const { folder, openFile = openJournalFile } = options;
    this.durability = {
      class: "file",
      sentence: `Every batch is on the disk, in ${folder}, before it is answered; it is as safe as that disk.`,
    };
    this.recovered = opened.recovered;
    this.#folder = folder;
    this.#bytesMax = options.bytesMax ?? limits.journalBytesMax;
    this.#segmentBytes = options.segmentBytes ?? limits.journalSegmentBytes;
    this.#openFile = openFile;
    this.#lock = lock;
    this.#segments = opened.segments;
    this.#reader = new FileJournalReader(opened.segments, () => this.#lastSeq);
    this.#file = opened.file;
    this.#lastSeq = opened.lastSeq;
  }

  position(): Promise<JournalPosition> {
    return this.#reader.position();
  }

  append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome> {
    const refusal = this.#closing === undefined ? this.#broken : closedError();
    if (refusal !== undefined) return Promise.resolve({ kind: "unknown", cause: refusal });
    return new Promise((settle) => {
      this.#waiting.push({ bytes, expectedSeq, settle });
      this.#writing ??= this.#writeGroups();
    });
  }

  read(seq: number): Promise<JournalRecord | undefined> {
    return this.#reader.read(seq);
  }

  replay(fromSeq: number): AsyncGenerator<JournalRecord> {
    return this.#reader.replay(fromSeq);
  }

  async *follow(fromSeq: number, signal: AbortSignal): AsyncGenerator<JournalRecord> {
    const isOver = () => signal.aborted || this.#closing !== undefined;
    let cursor: SegmentsCursor | undefined;
    try {
      while (!isOver()) {
        if ((cursor?.seq ?? fromSeq) > this.#lastSeq) {
          await this.#changes.wait(signal);
          continue;
        }
        cursor ??= await this.#segments.cursorAt(fromSeq, limits.journalReadWindowBytes);
        if (!isOver()) yield await cursor.next();
      }
    } finally {
      await cursor?.close();
    }
  }

  /** Frees whole segments: what lies below `seq` in the segment that holds it stays. */
  async purgeBelow(seq: number): Promise<void> {
    this.#reader.requireOpen();
    const purge = this.#purging.then(() => this.#segments.removeBelow(Math.min(seq, this.#lastSeq)));
    this.#purging = purge.catch(() => undefined); // told to who asked for it
    try {
      await purge;
    } catch (cause) {
      throw new UnreachableError(`files of the journal cannot be removed: ${String(cause)}`, { cause });
    }
  }

  async usage(): Promise<JournalUsage> {
    this.#reader.requireOpen();
    const bytesMax = this.#bytesMax;
    return { bytes: this.#segments.bytes, bytesMax, remedy: remedyOf(bytesMax) };
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
    await this.#reader.close();
    await this.#writing;
    await this.#purging;
    await this.#file.close();
    await this.#lock.release();
  }

  async #writeGroups(): Promise<void> {
    await Promise.resolve(); // appends of one turn share the first write
    while (this.#waiting.length > 0) {
      this.#underWay = this.#waiting;
      this.#waiting = [];
      const failure = await this.#beginSegment();
      const group = cutGroup(this.#underWay, this.#room);
      const fault = failure ?? (await this.#write(group));
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
    const { last } = this.#segments;
    try {
      await this.#requireUntouched();
      await this.#file.write(group.parts, last.end);
      await this.#file.sync();
    } catch (cause) {
      return await this.#undo(cause);
    }
    for (const place of group.places) last.index.add(place);
    last.end = group.end;
    this.#lastSeq += group.places.length;
    this.#changes.ring();
    return undefined;
  }

  /** Begins a new segment where the last one is large enough. The outcome of all that waits if that failed. */
  async #beginSegment(): Promise<AppendOutcome | undefined> {
    const { plan, end } = this.#segments.last;
    const isLarge = end >= this.#segmentBytes && plan.firstSeq <= this.#lastSeq;
    const hasRoom = this.#segments.bytes + LINKED_HEADER_BYTES <= this.#bytesMax;
    if (this.#broken !== undefined || !isLarge || !hasRoom) return undefined;
    try {
      await this.#requireUntouched();
      const link = { firstSeq: this.#lastSeq + 1, previousFirstSeq: plan.firstSeq, previousSize: end };
      const created = await createSegment(this.#folder, link, this.#openFile);
      await this.#file.close();
      this.#file = created.file;
      this.#segments.add(created.plan);
      return undefined;
    } catch (cause) {
      return isNoSpace(cause) ? noRoom(cause) : this.#break(cause);
    }
  }

  get #room() {
    const { end } = this.#segments.last;
    const sealedBytes = this.#segments.bytes - end;
    return { lastSeq: this.#lastSeq, end, sealedBytes, bytesMax: this.#bytesMax };
  }

  /** @throws ForeignWriteError */
  async #requireUntouched(): Promise<void> {
    const { end } = this.#segments.last;
    const size = await this.#file.size();
    if (size !== end) throw new ForeignWriteError(size, end);
  }

  async #undo(cause: unknown): Promise<AppendOutcome> {
    if (cause instanceof ForeignWriteError || !isNoSpace(cause)) return this.#break(cause);
    try {
      await this.#file.truncate(this.#segments.last.end);
      await this.#file.sync();
    } catch (another) {
      return this.#break(another);
    }
    return noRoom(cause);
  }

  #break(cause: unknown): AppendOutcome {
    this.#broken = new JournalDamagedError(
      `${this.#segments.last.plan.name} cannot be written any more (${messageOf(cause)}); ` +
        "see to the disk and start again: opening it finds out what it holds",
      { cause },
    );
    return { kind: "unknown", cause: this.#broken };
  }
}

/** Somebody wrote into a file that is ours alone. */
class ForeignWriteError extends Error {
  constructor(size: number, expected: number) {
    super(`it has ${size} bytes where this process left ${expected}: another one writes to it`);
  }
}

function noRoom(cause: unknown): AppendOutcome {
  return { kind: "full", message: `no room on the disk: ${(cause as Error).message}` };
}
