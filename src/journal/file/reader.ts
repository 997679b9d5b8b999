// Reads a file journal up to the last record that counts: for its writer (file.ts), whose end moves, and for another
// thread of the writer's process, or another process, up to a record that the writer says is stored. Needs no lock and
// changes nothing. What the writer appends meanwhile is not seen by another; what it purges meanwhile ends the reading
// with an error, if that had not come so far.

import { JournalDamagedError } from "../../errors.ts";
import type { JournalPosition, JournalReader, JournalRecord } from "../journal.ts";
import { closedError } from "../journal-errors.ts";
import { openJournalFile } from "./handle.ts";
import { listSegments } from "./segment.ts";
import { FileSegments } from "./segments.ts";

export interface FileReaderOptions {
  /** As the writer's. */
  readonly folder: string;
  /** At most the writer's `position().lastSeq` at any time before this. */
  readonly lastSeq: number;
}

/** @throws JournalDamagedError, also when there is no journal */
export async function openFileJournalReader({ folder, lastSeq }: FileReaderOptions): Promise<JournalReader> {
  const { plans } = await listSegments(folder, openJournalFile);
  if (plans.length === 0) throw new JournalDamagedError(`there is no journal in ${folder}`);
  return new FileJournalReader(new FileSegments(openJournalFile, plans), () => lastSeq);
}

export class FileJournalReader implements JournalReader {
  readonly #segments: FileSegments;
  readonly #lastSeq: () => number;
  #isClosed = false;

  /** @param lastSeq the last record that counts now */
  constructor(segments: FileSegments, lastSeq: () => number) {
    this.#segments = segments;
    this.#lastSeq = lastSeq;
  }

  async position(): Promise<JournalPosition> {
    this.requireOpen();
    const lastSeq = this.#lastSeq();
    return { firstSeq: lastSeq === 0 ? 0 : this.#segments.firstSeq, lastSeq, missing: 0 };
  }

  async read(seq: number): Promise<JournalRecord | undefined> {
    this.requireOpen();
    return seq > this.#lastSeq() ? undefined : await this.#segments.read(seq);
  }

  async *replay(fromSeq: number): AsyncGenerator<JournalRecord> {
    this.requireOpen();
    const lastSeq = this.#lastSeq();
    if (fromSeq > lastSeq) return;
    for await (const record of this.#segments.replay(fromSeq, lastSeq)) {
      this.requireOpen();
      yield record;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  /** @throws UnreachableError when it was closed */
  requireOpen(): void {
    if (this.#isClosed) throw closedError();
  }
}
