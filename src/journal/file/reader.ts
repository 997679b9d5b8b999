// Reads a file journal, for the writer (file.ts) and for another process or thread. A reader needs no lock and changes
// nothing. Another process may see a record a moment before the acknowledgement.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { JournalDamagedError } from "../../errors.ts";
import type { JournalReader, ReplayOptions, SegmentEnd, SegmentReader, SegmentRecord } from "../journal.ts";
import { closedError, earlierFormError, noSegmentError, shortError } from "../journal-errors.ts";
import { isMissing, openJournalFile, reachingDisk } from "./handle.ts";
import { SegmentLog } from "./segment-log.ts";

/** @param folder as given to the writer
 *  @throws JournalDamagedError when the folder holds no journal; WaggleError WAGGLE_JOURNAL_SETTINGS when the folder
 *  holds a journal of an earlier form; UnreachableError */
export async function openFileJournalReader(folder: string): Promise<JournalReader> {
  await refuseEarlierForm(folder);
  const reader = new FileJournalReader(folder);
  if ((await listSegments(folder)) === undefined)
    throw new JournalDamagedError(`there is no journal in ${folder}; name the folder of a file journal`);
  return reader;
}

/** Finds the file of a segment; undefined for a missing segment. @throws UnreachableError when closed */
export type FindLog = (number: number) => Promise<SegmentLog | undefined>;

export class FileSegmentReader implements SegmentReader {
  readonly number: number;
  readonly #find: FindLog;

  constructor(number: number, find: FindLog) {
    this.number = number;
    this.#find = find;
  }

  async end(): Promise<SegmentEnd | undefined> {
    return (await this.#find(this.number))?.end;
  }

  async read(position: number): Promise<SegmentRecord | undefined> {
    return await (await this.#find(this.number))?.read(position);
  }

  async opened(): Promise<SegmentRecord | undefined> {
    return await (await this.#find(this.number))?.opened();
  }

  async *replay(from: number, { until }: ReplayOptions = {}): AsyncGenerator<SegmentRecord> {
    const { number } = this;
    const log = await this.#find(number);
    if (log === undefined) throw noSegmentError(number);
    const last = until ?? log.last;
    if (from > last) return;
    for await (const record of log.records(from)) {
      yield record;
      if (record.position === last) return;
    }
    throw shortError(number, log.last + 1, log.last);
  }
}

class FileJournalReader implements JournalReader {
  readonly #folder: string;
  #isClosed = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async list(): Promise<readonly number[]> {
    if (this.#isClosed) throw closedError();
    return (await listSegments(this.#folder)) ?? [];
  }

  segment(number: number): SegmentReader {
    return new FileSegmentReader(number, () => this.#load(number));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async #load(number: number): Promise<SegmentLog | undefined> {
    if (this.#isClosed) throw closedError();
    const log = new SegmentLog(number, segmentPath(this.#folder, number), openJournalFile);
    return await reachingDisk(async () => {
      const file = await openJournalFile(log.path, "read").catch(undefinedIfMissing);
      if (file === undefined) return undefined;
      try {
        await log.load(file);
      } finally {
        await file.close();
      }
      return log;
    });
  }
}

export function segmentsFolder(folder: string): string {
  return join(folder, "segments");
}

export function segmentFolder(folder: string, number: number): string {
  return join(segmentsFolder(folder), String(number));
}

export function segmentPath(folder: string, number: number): string {
  return join(segmentFolder(folder, number), "records.log");
}

/** Numbers of the segments, ascending; undefined when the folder holds no journal. @throws UnreachableError */
export async function listSegments(folder: string): Promise<number[] | undefined> {
  const names = await reachingDisk(() => readdir(segmentsFolder(folder)).catch(undefinedIfMissing));
  const numbers = names?.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number);
  return numbers?.sort((one, other) => one - other);
}

/** @throws WaggleError WAGGLE_JOURNAL_SETTINGS for the journal of a version without segments */
export async function refuseEarlierForm(folder: string): Promise<void> {
  const names = (await reachingDisk(() => readdir(folder).catch(undefinedIfMissing))) ?? [];
  const earlier = names.find((name) => /^journal(?:-\d+)?\.log$/.test(name));
  if (earlier === undefined) return;
  throw earlierFormError(join(folder, earlier), "move the folder away");
}

function undefinedIfMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}
