// Reads committed batches by index, across segments: for pages of the audit and for outcomes of ended tasks.
// The segment's `Opened` gives the earliest position of a batch; only foreign records move the batch further back.
// Not here: folding (replay.ts).

import { JournalDamagedError, MissingRecordsError } from "../errors.ts";
import type { Journal, ReplayOptions, SegmentRecord } from "./journal.ts";
import { liveSegment } from "./live.ts";
import { type Batch, type BatchHeader, decodeBatchHeader, decodeRecord, hashOf } from "./records.ts";
import type { LiveSegment } from "./replay.ts";

/** A stored batch. */
export interface StoredBatch {
  readonly header: BatchHeader;
  /** Bytes of the whole record. */
  readonly bytes: Uint8Array;
  /** The batch names another hash than the hash of the batch read before: the batch before was changed. */
  readonly breaksChain?: true;
}

export class LogReader {
  readonly #journal: Journal;
  /** Live segments, ascending; read at the first use. */
  #segments: Promise<readonly LiveSegment[]> | undefined;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Call after a segment was opened or removed: the next reading lists the segments again. */
  changed(): void {
    this.#segments = undefined;
  }

  /** Index of the first stored batch; undefined if no segment is live. @throws UnreachableError */
  async firstIdx(): Promise<number | undefined> {
    const [first] = await this.#live();
    return first === undefined ? undefined : firstIdxOf(first);
  }

  /** Batches from `from` on, in order, up to the present end. A batch that breaks the chain is marked, not left out.
   *  @throws UnreachableError; MissingRecordsError if `from` is not found; JournalDamagedError */
  async *replay(from: number, options: Omit<ReplayOptions, "until"> = {}): AsyncGenerator<StoredBatch> {
    try {
      yield* this.#replay(from, options);
    } catch (error) {
      this.changed(); // a segment may have been removed
      throw error;
    }
  }

  async *#replay(from: number, options: Omit<ReplayOptions, "until">): AsyncGenerator<StoredBatch> {
    let next = from;
    let prev: string | undefined;
    const first = await this.#holding(next);
    if (first === undefined && (await this.#live()).length > 0)
      throw new MissingRecordsError(`batch ${from} is in no kept segment`);
    for (let live = first; live !== undefined; ) {
      const before = next;
      const last = await this.#lastIdxIn(live);
      const start = Math.max(live.opened.base?.position ?? live.position, positionOf(live, next) - 1) + 1;
      for await (const record of this.#journal.segment(live.number).replay(start, options)) {
        const stored = batchIn(record, live, next);
        if (stored === undefined) continue;
        yield prev === undefined || stored.header.prev === prev ? stored : { ...stored, breaksChain: true };
        prev = hashOf(record.bytes);
        next += 1;
        if (next > last) break;
      }
      if (next === from) throw new MissingRecordsError(`batch ${from} is not found at present`);
      const following = await this.#holding(next);
      live = next === before || following?.number === live.number ? undefined : following;
    }
  }

  /** Undefined if the batch is not stored. @throws UnreachableError, JournalDamagedError */
  async batch(idx: number): Promise<Batch | undefined> {
    try {
      const found = await this.#batch(idx);
      if (found !== undefined) return found;
      this.changed(); // a segment may have been opened since the last listing
      return await this.#batch(idx);
    } catch (error) {
      this.changed();
      throw error;
    }
  }

  async #batch(idx: number): Promise<Batch | undefined> {
    const live = await this.#holding(idx);
    if (live === undefined) return undefined;
    const segment = this.#journal.segment(live.number);
    const position = positionOf(live, idx);
    const record = await segment.read(position);
    if (record === undefined) return undefined;
    const stored = batchIn(record, live, idx);
    if (stored !== undefined) return decodedBatch(stored);
    for await (const later of segment.replay(position + 1)) {
      const found = batchIn(later, live, idx);
      if (found !== undefined) return decodedBatch(found);
    }
    return undefined;
  }

  /** The newest live segment that begins at or before a batch. */
  async #holding(idx: number): Promise<LiveSegment | undefined> {
    const segments = await this.#live();
    return segments.findLast((live) => firstIdxOf(live) <= idx);
  }

  /** The last batch to read from a segment; the next batch is in a later segment. Later records of the segment may be
   *  damaged or uncommitted. */
  async #lastIdxIn({ number }: LiveSegment): Promise<number> {
    const later = (await this.#live()).filter((live) => live.number > number);
    return Math.min(...later.map(firstIdxOf)) - 1;
  }

  #live(): Promise<readonly LiveSegment[]> {
    if (this.#segments !== undefined) return this.#segments;
    const reading = this.#readLive();
    this.#segments = reading;
    reading.catch(() => {
      if (this.#segments === reading) this.#segments = undefined;
    });
    return reading;
  }

  async #readLive(): Promise<readonly LiveSegment[]> {
    const numbers = await this.#journal.list();
    const found = await Promise.all(numbers.map((number) => liveSegment(this.#journal.segment(number))));
    return found.filter((live) => live !== undefined);
  }
}

/** Index of the first batch in a segment, copied batches included. */
export function firstIdxOf({ opened }: LiveSegment): number {
  return (opened.base?.idx ?? opened.tail.idx) + 1;
}

/** The position of a batch, if no foreign records precede the batch. */
function positionOf({ opened, position }: LiveSegment, idx: number): number {
  const { base, tail } = opened;
  if (idx > tail.idx) return position + (idx - tail.idx);
  if (base === undefined) throw new JournalDamagedError(`batch ${idx} is not in this segment`);
  return base.position + (idx - base.idx);
}

function batchIn(
  { position, bytes }: SegmentRecord,
  { opened, position: openedAt }: LiveSegment,
  idx: number,
): StoredBatch | undefined {
  const header = decodeBatchHeader(bytes);
  if (header?.idx !== idx || header.journal !== opened.journal) return undefined;
  const isCopy = position < openedAt;
  const isOfWriter = header.session === opened.session && header.term === opened.term;
  return isCopy || isOfWriter ? { header, bytes } : undefined;
}

function decodedBatch({ bytes }: StoredBatch): Batch | undefined {
  const record = decodeRecord(bytes);
  return record?.kind === "batch" ? record : undefined;
}
