// The store of a journal in memory. Handles share the store as clients share a server. Every call runs at once and
// never fails. The store has the faults of a power loss and of a disk; a handle has the faults of a connection
// (memory.ts).

import { assert } from "../assert.ts";
import { type Clock, systemClock } from "../clock.ts";
import { Bell } from "./bell.ts";
import type { AppendOutcome, JournalUsage, SegmentEnd, SegmentRecord } from "./journal.ts";
import { fullError, unreadableError } from "./journal-errors.ts";

export interface MemoryStoreOptions {
  /** See `MemoryJournalStore.bytesMax`. */
  readonly bytesMax?: number;
  /** Measures how long a follower waits at a fault. Default: the system's. */
  readonly clock?: Pick<Clock, "after">;
}

export interface MemoryAppend {
  readonly segment: number;
  readonly bytes: Uint8Array;
  readonly expected: number;
  readonly isOpened: boolean;
}

interface StoredRecord extends SegmentRecord {
  readonly isOpened: boolean;
  isDamaged: boolean;
}

interface StoredSegment {
  /** By position - 1; undefined where a record was lost. The last entry is never undefined. */
  readonly records: (StoredRecord | undefined)[];
  /** Records that are not lost, and the sum of bytes. */
  held: number;
  bytes: number;
  isSealed: boolean;
}

export class MemoryJournalStore {
  /** Rings at every change, and when a handle goes offline, online, or is closed. */
  readonly changes = new Bell();
  readonly clock: Pick<Clock, "after">;
  /** Bound on the bytes of all records; undefined when unbounded. 0: full from now on. */
  bytesMax: number | undefined;
  readonly #segments = new Map<number, StoredSegment>();

  constructor({ bytesMax, clock = systemClock }: MemoryStoreOptions = {}) {
    this.bytesMax = bytesMax;
    this.clock = clock;
  }

  list(): number[] {
    return [...this.#segments.keys()].sort((one, other) => one - other);
  }

  end(segment: number): SegmentEnd | undefined {
    const stored = this.#segments.get(segment);
    if (stored === undefined) return undefined;
    const { records, held, bytes, isSealed } = stored;
    return { position: records.length, bytes, isSealed, missing: records.length - held };
  }

  /** The end as followers need to know: cheaper than `end`, for every record. */
  view(segment: number) {
    const stored = this.#segments.get(segment);
    if (stored === undefined) return undefined;
    const { records, isSealed } = stored;
    return {
      end: records.length,
      isSealed,
      has: (position: number) => records[position - 1] !== undefined,
    };
  }

  /** Undefined where nothing is stored. @throws JournalDamagedError */
  read(segment: number, position: number): SegmentRecord | undefined {
    return this.#shown(segment, this.#segments.get(segment)?.records[position - 1]);
  }

  /** @throws JournalDamagedError */
  opened(segment: number): SegmentRecord | undefined {
    const records = this.#segments.get(segment)?.records;
    return this.#shown(
      segment,
      records?.findLast((record) => record?.isOpened === true),
    );
  }

  append({ segment, bytes, expected, isOpened }: MemoryAppend): AppendOutcome {
    const stored = this.#segments.get(segment);
    if (stored === undefined) return { kind: "missing" };
    if (stored.isSealed) return { kind: "sealed" };
    if (stored.records.length !== expected) return { kind: "refused" };
    if (this.bytesMax !== undefined && this.usage.bytes + bytes.length > this.bytesMax)
      return { kind: "full", message: `the journal would exceed its ${this.bytesMax} bytes` };
    stored.records.push({ position: expected + 1, bytes, isOpened, isDamaged: false });
    stored.held += 1;
    stored.bytes += bytes.length;
    this.changes.ring();
    return { kind: "stored" };
  }

  /** @throws WaggleError WAGGLE_JOURNAL_FULL */
  create(segment: number): void {
    assert(Number.isSafeInteger(segment) && segment > 0, "segments are numbered from 1");
    if (this.#segments.has(segment)) return;
    if (this.bytesMax !== undefined && this.usage.bytes >= this.bytesMax)
      throw fullError(`the journal has used its ${this.bytesMax} bytes`);
    this.#segments.set(segment, { records: [], held: 0, bytes: 0, isSealed: false });
    this.changes.ring();
  }

  seal(segment: number): boolean {
    const stored = this.#segments.get(segment);
    if (stored === undefined) return false;
    stored.isSealed = true;
    this.changes.ring();
    return true;
  }

  remove(segment: number): void {
    this.#segments.delete(segment);
    this.changes.ring();
  }

  get usage(): JournalUsage {
    let bytes = 0;
    for (const segment of this.#segments.values()) bytes += segment.bytes;
    return { bytes, bytesMax: this.bytesMax };
  }

  /** Stores a foreign record now, whatever is under way. Returns the position. */
  insert(segment: number, bytes: Uint8Array, isOpened = false): number {
    const expected = this.#require(segment).records.length;
    const { kind } = this.append({ segment, bytes, expected, isOpened });
    assert(kind === "stored", `a foreign record is stored, not ${kind}`);
    return expected + 1;
  }

  /** Power loss: the last records are gone, and the positions are free again. */
  loseTail(segment: number, count: number): void {
    const stored = this.#require(segment);
    const { records } = stored;
    forget(stored, records.splice(Math.max(records.length - count, 0)));
    while (records.length > 0 && records.at(-1) === undefined) records.pop();
    this.changes.ring();
  }

  /** Power loss: the segment takes appends again. */
  loseSeal(segment: number): void {
    this.#require(segment).isSealed = false;
    this.changes.ring();
  }

  /** Power loss: a segment is gone, with all records. */
  loseSegment(segment: number): void {
    this.#require(segment);
    this.remove(segment);
  }

  /** Damage: records before the last one are gone, and the segment's end stays. */
  loseRecords(segment: number, position: number, count = 1): void {
    const stored = this.#require(segment);
    const { records } = stored;
    assert(position > 0 && position + count <= records.length, "the last record stays");
    forget(stored, records.slice(position - 1, position - 1 + count));
    records.fill(undefined, position - 1, position - 1 + count);
    this.changes.ring();
  }

  /** Damage: the storage counts the record and cannot read it. */
  damageRecord(segment: number, position: number): void {
    const record = this.#require(segment).records[position - 1];
    assert(record !== undefined, "a damaged record was stored");
    record.isDamaged = true;
    this.changes.ring();
  }

  #require(segment: number): StoredSegment {
    const stored = this.#segments.get(segment);
    assert(stored !== undefined, `segment ${segment} exists`);
    return stored;
  }

  #shown(segment: number, record: StoredRecord | undefined): SegmentRecord | undefined {
    if (record?.isDamaged === true) throw unreadableError(segment, record.position);
    return record === undefined ? undefined : { position: record.position, bytes: record.bytes };
  }
}

function forget(segment: StoredSegment, lost: readonly (StoredRecord | undefined)[]): void {
  for (const record of lost) {
    if (record === undefined) continue;
    segment.held -= 1;
    segment.bytes -= record.bytes.length;
  }
}
