// Journals of a leader for tests of audits, and the same with records changed as by somebody who repairs the storage's
// checksums.

import { expect } from "vitest";
import type { Journal, JournalReader, SegmentReader, SegmentRecord } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { decodeRecord } from "../../src/journal/records.ts";
import { MemoryLedLog } from "../coordinator/compacting/led-log.ts";

/** A journal with other bytes at some positions. */
export class Tampered implements JournalReader {
  readonly #journal: JournalReader;
  readonly #changes = new Map<string, (bytes: Uint8Array) => Uint8Array>();

  constructor(journal: JournalReader) {
    this.#journal = journal;
  }

  /** Changes the text of a record. Every checksum of the storage fits again. */
  change(segment: number, position: number, edit: (text: string) => string): this {
    this.#changes.set(`${segment}/${position}`, (bytes) => Buffer.from(edit(Buffer.from(bytes).toString())));
    return this;
  }

  list() {
    return this.#journal.list();
  }

  close() {
    return this.#journal.close();
  }

  segment(number: number): SegmentReader {
    const reader = this.#journal.segment(number);
    const changed = (record: SegmentRecord) => {
      const change = this.#changes.get(`${number}/${record.position}`);
      return change === undefined ? record : { ...record, bytes: change(record.bytes) };
    };
    const orUndefined = async (found: Promise<SegmentRecord | undefined>) => {
      const record = await found;
      return record === undefined ? undefined : changed(record);
    };
    return {
      number,
      end: () => reader.end(),
      read: (position) => orUndefined(reader.read(position)),
      opened: () => orUndefined(reader.opened()),
      async *replay(from, options) {
        for await (const record of reader.replay(from, options)) yield changed(record);
      },
    };
  }
}

/** Three segments, each of about ten batches; the second and the third begin with a base. */
export async function aCompactedLog(): Promise<MemoryLedLog> {
  const log = await MemoryLedLog.start();
  await log.submit(9);
  await log.change();
  await log.submit(9);
  const made = await log.make(3);
  await log.submit(2); // copied behind the base
  await log.changeTo(made);
  await log.submit(9);
  return log;
}

/** Three segments without a base. */
export async function aLongLog(): Promise<MemoryLedLog> {
  const log = await MemoryLedLog.start();
  for (const number of [2, 3]) {
    await log.submit(9);
    await log.continueIn(number);
  }
  await log.submit(9);
  return log;
}

/** Position of a batch. */
export async function placeOf(log: MemoryLedLog, idx: number): Promise<[segment: number, position: number]> {
  const journal = new MemoryJournal(log.store);
  for (const number of await journal.list())
    for await (const { position, bytes } of journal.segment(number).replay(1)) {
      const record = decodeRecord(bytes);
      if (record?.kind === "batch" && record.idx === idx) return [number, position];
    }
  return expect.fail(`batch ${idx} is stored`);
}

/** Writes every record of a journal into another journal. */
export async function copyInto(target: Journal, source: JournalReader): Promise<void> {
  for (const number of await source.list()) {
    await target.create(number);
    const segment = target.segment(number);
    for await (const { position, bytes } of source.segment(number).replay(1)) {
      const isOpened = decodeRecord(bytes)?.kind === "opened";
      expect(await segment.append(bytes, position - 1, { isOpened })).toEqual({ kind: "stored" });
    }
  }
}
