// Reads a segment of a file journal from its beginning: is every record whole, and if not, was the tail torn by a
// crash or was the journal damaged?
//
// A crash tears only what was not yet synced, and nobody was promised that: it may be cut. So a broken record
// is damage if a later record says that it had been on the disk (`unsynced` in record.ts), and otherwise
// the end of what counts: a power failure may keep the second of two records and lose the first.

import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { JournalFile } from "./handle.ts";
import { isBodyOf, parseRecordHead, peekSeq, RECORD_HEAD_BYTES, type RecordHead } from "./record.ts";
import { FileIndex } from "./record-index.ts";
import type { SegmentPlan } from "./segment.ts";
import { FileWindow } from "./window.ts";

export interface Scan {
  readonly index: FileIndex;
  /** `firstSeq - 1` when empty. */
  readonly lastSeq: number;
  /** Where the next record goes; what is behind it in the file is a torn tail. */
  readonly end: number;
}

/** @throws JournalDamagedError naming record and position */
export async function scanSegment(
  file: JournalFile,
  { name, firstSeq, start, size }: SegmentPlan,
): Promise<Scan> {
  const window = new FileWindow(file, limits.journalReadWindowBytes);
  const index = new FileIndex();
  let end = start;
  let seq = firstSeq;
  for (; end < size; seq++) {
    const head = await wholeRecordAt(window, end, size);
    const place = { name, seq, offset: end, size };
    if (head === undefined) {
      await requireTornTail(window, place);
      break;
    }
    if (head.seq !== seq) throw outOfOrderError(head.seq, place);
    index.add({ seq, offset: end });
    end += RECORD_HEAD_BYTES + head.length;
  }
  return { index, lastSeq: seq - 1, end };
}

async function wholeRecordAt(
  window: FileWindow,
  offset: number,
  size: number,
): Promise<RecordHead | undefined> {
  const head = parseRecordHead(await window.view(offset, { length: RECORD_HEAD_BYTES, end: size }));
  if (head === undefined) return undefined;
  const body = await window.view(offset + RECORD_HEAD_BYTES, { length: head.length, end: size });
  return isBodyOf(head, body) ? head : undefined;
}

interface Break {
  /** Of the file. */
  readonly name: string;
  /** Of the record that is broken. */
  readonly seq: number;
  readonly offset: number;
  readonly size: number;
}

/** @throws JournalDamagedError when a later record proves that the broken one had been synced */
async function requireTornTail(window: FileWindow, broken: Break): Promise<void> {
  const last = broken.size - RECORD_HEAD_BYTES;
  for (let offset = broken.offset + 1; offset <= last; ) {
    const length = limits.journalReadWindowBytes;
    const bytes = await window.view(offset, { length, end: broken.size });
    for (const candidate of plausibleHeads(bytes, broken)) {
      const at = offset + candidate;
      const head = await wholeRecordAt(window, at, broken.size);
      if (head !== undefined && provesSynced(head, broken.seq)) throw damagedError(broken, head.seq, at);
    }
    offset += Math.max(bytes.length - RECORD_HEAD_BYTES + 1, 1);
  }
}

function plausibleHeads(bytes: Buffer, { seq, offset, size }: Break): number[] {
  const seqMax = seq + Math.ceil((size - offset) / RECORD_HEAD_BYTES);
  const found: number[] = [];
  for (let at = 0; at <= bytes.length - RECORD_HEAD_BYTES; at++) {
    const candidate = peekSeq(bytes, at);
    if (candidate > seq && candidate <= seqMax && parseRecordHead(bytes, at) !== undefined) found.push(at);
  }
  return found;
}

function provesSynced(later: RecordHead, seq: number): boolean {
  return later.seq > seq && later.seq - 1 - later.unsynced >= seq;
}

function damagedError(
  { name, seq, offset }: Break,
  laterSeq: number,
  laterOffset: number,
): JournalDamagedError {
  return new JournalDamagedError(
    `${name} is damaged: record ${seq} at byte ${offset} does not match its checksum, and record ` +
      `${laterSeq} at byte ${laterOffset} was written when it did; restore the file from a backup`,
  );
}

function outOfOrderError(found: number, { name, seq, offset }: Break): JournalDamagedError {
  return new JournalDamagedError(
    `${name} is damaged: record ${found} stands at byte ${offset}, where record ${seq} belongs; restore ` +
      "the file from a backup",
  );
}
