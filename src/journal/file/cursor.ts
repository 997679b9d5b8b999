// A place between two records of a segment, moving towards its end. Checks each record as it is read: a segment may
// never have been read since it was written, and a disk may forget. What it comes by, the segment's index learns.

import { JournalDamagedError } from "../../errors.ts";
import type { JournalRecord } from "../journal.ts";
import type { JournalFile } from "./handle.ts";
import { isBodyOf, parseRecordHead, RECORD_HEAD_BYTES, type RecordHead } from "./record.ts";
import type { FileIndex, Place } from "./record-index.ts";
import { FileWindow } from "./window.ts";

export interface CursorOptions {
  readonly file: JournalFile;
  /** Of the file, for errors. */
  readonly name: string;
  readonly index: FileIndex;
  readonly windowBytes: number;
  /** Where it begins. */
  readonly place: Place;
}

export class FileCursor {
  readonly #window: FileWindow;
  readonly #name: string;
  readonly #index: FileIndex;
  #seq: number;
  #offset: number;

  constructor({ file, name, index, windowBytes, place }: CursorOptions) {
    this.#window = new FileWindow(file, windowBytes);
    this.#name = name;
    this.#index = index;
    this.#seq = place.seq;
    this.#offset = place.offset;
  }

  /** Of the record that `next` reads. */
  get seq(): number {
    return this.#seq;
  }

  /** Moves before record `seq`, which is not behind. `end` is where synced records end.
   *  @throws JournalDamagedError */
  async skipTo(seq: number, end: number): Promise<void> {
    while (this.#seq < seq) this.#pass(await this.#head(end));
  }

  /** Reads the record and moves behind it. @throws JournalDamagedError */
  async next(end: number): Promise<JournalRecord> {
    const head = await this.#head(end);
    const body = await this.#window.view(this.#offset + RECORD_HEAD_BYTES, { length: head.length, end });
    if (!isBodyOf(head, body)) throw this.#rotten();
    const record = { seq: head.seq, bytes: new Uint8Array(body) };
    this.#pass(head);
    return record;
  }

  async #head(end: number): Promise<RecordHead> {
    const head = parseRecordHead(await this.#window.view(this.#offset, { length: RECORD_HEAD_BYTES, end }));
    if (head?.seq !== this.#seq) throw this.#rotten();
    return head;
  }

  #pass(head: RecordHead): void {
    this.#index.add({ seq: this.#seq, offset: this.#offset });
    this.#seq += 1;
    this.#offset += RECORD_HEAD_BYTES + head.length;
  }

  #rotten(): JournalDamagedError {
    return new JournalDamagedError(
      `${this.#name} is damaged: record ${this.#seq} at byte ${this.#offset} was whole when it was written and does ` +
        "not match its checksum any more; restore the file from a backup",
    );
  }
}
