// One segment's file as a reader sees it: the end, the opened record, and the records from a position on. Every reading
// opens the file anew, so a segment may be removed meanwhile. Not here: writing (group-writer.ts).

import { fstatSync } from "node:fs";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { SegmentEnd, SegmentRecord } from "../journal.ts";
import { unreadableError } from "../journal-errors.ts";
import {
  type FileAccess,
  isMissing,
  type JournalFile,
  type OpenJournalFile,
  reachingDisk,
} from "./handle.ts";
import { behind, HEAD_BYTES, HEADER_BYTES, headerFault, type Place } from "./record.ts";
import { emptyEnd, type FileEnd, readSeal, scanRecords, sizeOf } from "./scan.ts";
import { FileWindow } from "./window.ts";

export class SegmentLog {
  readonly number: number;
  readonly path: string;
  readonly #openFile: OpenJournalFile;
  /** Places of some records, ascending, one per `limits.journalIndexSpacingBytes`, as far as the file was read: ten
   *  gibibytes of journal need a megabyte. */
  readonly #index: Place[] = [];
  /** Behind the synced records. The writer sets a new end after each sync. */
  fileEnd: FileEnd = emptyEnd;

  constructor(number: number, path: string, openFile: OpenJournalFile) {
    this.number = number;
    this.path = path;
    this.#openFile = openFile;
  }

  /** Position of the last record; 0 when empty. */
  get last(): number {
    return this.fileEnd.next.position - 1;
  }

  get end(): SegmentEnd {
    const { isSealed, missing } = this.fileEnd;
    return { position: this.last, bytes: sizeOf(this.fileEnd), isSealed, missing };
  }

  /** The end as followers need to know. */
  get view() {
    const { last } = this;
    const has = (position: number) => position > 0 && position <= last;
    return { end: last, isSealed: this.fileEnd.isSealed, has };
  }

  /** @throws JournalDamagedError when the file is missing; UnreachableError */
  async open(access: FileAccess): Promise<JournalFile> {
    try {
      return await reachingDisk(() => this.#openFile(this.path, access));
    } catch (error) {
      if (!isMissing((error as Error).cause)) throw error;
      throw new JournalDamagedError(
        `${this.path} is missing: its segment was removed, or the file was; restore it from a backup`,
        { cause: error },
      );
    }
  }

  /** Finds the end in the file, and returns the file's size.
   *  @throws JournalDamagedError when the file does not begin as the segment */
  async load(file: JournalFile): Promise<number> {
    const { size } = fstatSync(file.fd);
    const edges = new FileWindow(file, HEAD_BYTES);
    const fault = headerFault(await edges.view(0, { length: HEADER_BYTES, end: size }), this.number);
    if (fault !== undefined)
      throw new JournalDamagedError(
        `${this.path} cannot be read: ${fault}; restore it from a backup, or move its folder away`,
      );
    this.fileEnd = (await readSeal(edges, size)) ?? (await this.#scan(file, size));
    return size;
  }

  /** Keeps a record's place for later readings: a place per stretch, and the first place behind damage. */
  note(place: Place, isBehindDamage = false): void {
    const last = this.#index.at(-1);
    if (last === undefined || isBehindDamage || place.offset >= last.offset + limits.journalIndexSpacingBytes)
      this.#index.push(place);
  }

  /** Undefined beyond the end. @throws JournalDamagedError */
  async read(position: number): Promise<SegmentRecord | undefined> {
    if (position < 1 || position > this.last) return undefined;
    return await first(this.records(position, limits.journalIndexSpacingBytes));
  }

  /** @throws JournalDamagedError */
  async opened(): Promise<SegmentRecord | undefined> {
    const { opened } = this.fileEnd;
    return opened && (await first(this.#recordsFrom(opened, opened.position, HEAD_BYTES)));
  }

  /** Records up to the end, which may move meanwhile. @throws JournalDamagedError */
  records(from: number, windowBytes = limits.journalReadWindowBytes): AsyncGenerator<SegmentRecord> {
    const known = this.#index.findLast(({ position }) => position <= from);
    return this.#recordsFrom(known ?? emptyEnd.next, from, windowBytes);
  }

  async *#recordsFrom(start: Place, from: number, windowBytes: number): AsyncGenerator<SegmentRecord> {
    const file = await this.open("read");
    try {
      const window = new FileWindow(file, windowBytes);
      for (let place = start; place.position <= this.last; ) {
        const { position, offset } = place;
        const { next } = this.fileEnd;
        const record = position < from ? undefined : await window.recordAt(offset, next.offset);
        const head = position < from ? await window.headAt(offset, next.offset) : record?.head;
        if (head?.position !== position) throw this.#unreadable(Math.max(position, from), offset);
        this.note(place);
        if (record !== undefined) yield { position, bytes: new Uint8Array(record.body) };
        place = behind(place, head.length);
      }
    } finally {
      await file.close();
    }
  }

  async #scan(file: JournalFile, size: number): Promise<FileEnd> {
    const window = new FileWindow(file, limits.journalReadWindowBytes);
    return await scanRecords(window, size, (...found) => this.note(...found));
  }

  #unreadable(position: number, offset: number): JournalDamagedError {
    return unreadableError(
      this.number,
      position,
      `cannot be read: ${this.path} is damaged at byte ${offset}`,
    );
  }
}

async function first(records: AsyncGenerator<SegmentRecord>): Promise<SegmentRecord | undefined> {
  for await (const record of records) return record;
  return undefined;
}
