// The fold of a journal's records into state, and the rule that decides which records count.
//
// A batch is applied only if the batch continues the log:
//   - `journal` is the identity of the log's journal;
//   - `prev` is the hash of the last applied batch, and `idx` the next index;
//   - the segment's writer wrote the batch in the segment's term. A batch before the segment's `Opened` is copied from
//     an earlier segment, so its writer is not checked: the hash chain is proof enough.
// All further records are skipped. The rule reads the journal alone, so all readers skip the same records.
//
// The journal is damaged if a record is missing, or if the segment's writer skips more batches than a leader may have
// in flight. A batch with an earlier time than its predecessor, or with an event that does not fit the state, is damage
// too. After such a batch the replay refuses to continue: its state may contain a part of the batch.

import { assert } from "../assert.ts";
import { apply } from "../core/apply.ts";
import { JournalDamagedError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../ids.ts";
import { limits } from "../limits.ts";
import { passTo } from "../state/journal-time.ts";
import { emptyState, type SwarmState } from "../state/state.ts";
import type { SegmentRecord } from "./journal.ts";
import { RecentHashes } from "./recent-hashes.ts";
import {
  type Batch,
  type BatchHeader,
  type ChainTail,
  type Closing,
  decodeBatchHeader,
  decodeRecord,
  hashOf,
  type Opened,
} from "./records.ts";

export type Verdict =
  | { readonly kind: "applied"; readonly batch: Batch }
  | { readonly kind: "closing"; readonly closing: Closing }
  /** Foreign: no coordinator of the journal wrote the record. Not foreign: a superseded batch, or a record that changes
   *  no state. */
  | { readonly kind: "skipped"; readonly isForeign: boolean };

/** A batch is the log's next batch, or no part of the log. */
type Standing = "next" | "superseded" | "foreign";

/** Records from outside: no coordinator of the journal wrote them. */
export interface ForeignRecords {
  readonly count: number;
  /** Journal time of the last batch before the newest foreign record. */
  readonly lastAt: Instant;
}

/** A record's place in the journal. */
export interface Place {
  readonly segment: number;
  /** 0 before the first record. */
  readonly position: number;
}

/** A segment, and its `Opened`. */
export interface LiveSegment {
  readonly number: number;
  readonly opened: Opened;
  /** `hashOf` the `Opened`. */
  readonly openedHash: string;
  /** Position of the `Opened`. */
  readonly position: number;
}

export const emptyTail: ChainTail = { journal: "", term: 0 as Term, idx: 0 as BatchIndex, hash: "" };

/** A batch continues the log but does not fit the state: a newer version wrote the batch, or the journal is damaged. */
export class UnfitBatchError extends JournalDamagedError {}

export interface FoldedLog {
  readonly state: SwarmState;
  readonly tail: ChainTail;
  readonly recent?: RecentHashes;
}

export class Replay {
  readonly state: SwarmState;
  /** Hashes of the newest applied batches. */
  readonly recent: RecentHashes;
  #foreign: ForeignRecords | undefined;
  #tail: ChainTail;
  #live: LiveSegment | undefined;
  #position = 0;
  /** Hash of the last record read in the segment; empty before the first. */
  #recordHash = "";
  #closing: Closing | undefined;
  #isAhead = false;
  #isStateBehind = false;
  #unfit: UnfitBatchError | undefined;

  /** @param from an earlier fold to continue; the replay takes over its state. Default: the empty log */
  constructor(from?: FoldedLog) {
    this.state = from?.state ?? emptyState();
    this.#tail = from?.tail ?? emptyTail;
    this.recent = from?.recent ?? new RecentHashes();
  }

  /** The last applied batch. */
  get tail(): ChainTail {
    return this.#tail;
  }

  /** The last record read. Undefined before the first segment is entered. */
  get place(): Place | undefined {
    return this.#live === undefined ? undefined : { segment: this.#live.number, position: this.#position };
  }

  /** The segment in which the replay reads. */
  get live(): LiveSegment | undefined {
    return this.#live;
  }

  /** Foreign records met; undefined before the first. */
  get foreign(): ForeignRecords | undefined {
    return this.#foreign;
  }

  /** The `Closing` by the segment's writer, once read. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  /** True if the replay holds acknowledged batches that were not found in the segment so far. */
  get isAhead(): boolean {
    return this.#isAhead;
  }

  /** `hashOf` the last record read in the segment; empty before the first. */
  get recordHash(): string {
    return this.#recordHash;
  }

  /** Continues in a segment, after a position. @throws JournalDamagedError if the segment belongs to a different
   *  journal */
  enter(live: LiveSegment, position: number): void {
    const { journal } = this.#tail;
    if (journal !== "" && live.opened.journal !== journal)
      throw new JournalDamagedError(
        `segment ${live.number} belongs to the journal ${live.opened.journal}, and the segment before it to ${journal}`,
      );
    this.#tail = { ...this.#tail, journal: live.opened.journal };
    this.#live = live;
    this.#position = position;
    this.#recordHash = "";
    this.#closing = undefined;
    this.#isAhead = false;
  }

  /** For the writer of a segment, whose state already contains the batches up to `tail`: skips reading them. */
  continueAt(tail: ChainTail, position: number, recordHash: string): void {
    this.#tail = tail;
    this.#position = position;
    this.#recordHash = recordHash;
  }

  /** Counts a foreign record. */
  metForeign(): void {
    this.#foreign = { count: (this.#foreign?.count ?? 0) + 1, lastAt: this.state.at };
  }

  /** Applies a committed batch, stored in the segment or not. @throws JournalDamagedError if the batch does not
   *  continue the log */
  takeCommitted(batch: Batch, hash: string): void {
    if (this.#tail.journal === "") this.#tail = { ...this.#tail, journal: batch.journal };
    if (!this.#continues(batch))
      throw new JournalDamagedError(`batch ${batch.idx} does not continue batch ${this.#tail.idx}`);
    this.#apply(batch, hash);
    this.#isAhead = true;
  }

  /** Applies or skips the next record of the segment. @throws JournalDamagedError; UnfitBatchError, also by every later
   *  call */
  take(record: SegmentRecord): Verdict {
    const live = this.#requireNext(record);
    const decoded = decodeRecord(record.bytes);
    this.#position = record.position;
    const hash = hashOf(record.bytes);
    this.#recordHash = hash;
    if (decoded?.kind === "batch") return this.#takeBatch(decoded, hash, live);
    if (decoded?.kind === "closing" && decoded.session === live.opened.session) {
      this.#closing = decoded;
      return { kind: "closing", closing: decoded };
    }
    if (record.position === live.position) this.#requireCopies(live);
    return this.#skip(decoded === undefined || decoded.session !== live.opened.session);
  }

  /** Reads only the header of the next record: `tail` advances and `state` stays behind, so no `take` may follow. For
   *  copies. @returns whether the record is the next batch of the log. @throws as `take` */
  pass(record: SegmentRecord): boolean {
    const live = this.#requireNext(record);
    this.#position = record.position;
    const hash = hashOf(record.bytes);
    this.#recordHash = hash;
    const header = decodeBatchHeader(record.bytes);
    if (header === undefined || this.#standingOf(header, hash, live) !== "next") return false;
    this.#isStateBehind = true;
    this.#advance(header, hash);
    return true;
  }

  #requireNext({ position }: SegmentRecord): LiveSegment {
    if (this.#unfit !== undefined) throw this.#unfit;
    if (this.#live === undefined) throw new JournalDamagedError("no segment was entered");
    if (position === this.#position + 1) return this.#live;
    throw new JournalDamagedError(
      `segment ${this.#live.number} goes from record ${this.#position} to ${position}: records are missing`,
    );
  }

  /** A base and the copied batches after the base must end with the batch named in the segment's `Opened`. */
  #requireCopies({ number, opened }: LiveSegment): void {
    const { idx, hash } = opened.tail;
    if (this.#tail.idx === idx && this.#tail.hash === hash) return;
    throw new JournalDamagedError(
      `segment ${number} was opened behind batch ${idx}, and its base and copies end with batch ${this.#tail.idx}`,
    );
  }

  #takeBatch(batch: Batch, hash: string, live: LiveSegment): Verdict {
    assert(!this.#isStateBehind, "no batch is applied after `pass`");
    const standing = this.#standingOf(batch, hash, live);
    if (standing !== "next") return this.#skip(standing === "foreign");
    this.#apply(batch, hash);
    return { kind: "applied", batch };
  }

  /** @throws JournalDamagedError if batches before this batch are missing */
  #standingOf(batch: BatchHeader, hash: string, { opened, number, position }: LiveSegment): Standing {
    const { journal, session, term, idx } = batch;
    if (hash === this.#tail.hash) this.#isAhead = false;
    const isCopy = this.#position < position;
    const isOfWriter = session === opened.session && term === opened.term;
    if (!isCopy && !isOfWriter) return journal === this.#tail.journal ? "superseded" : "foreign";
    if (this.#continues(batch)) return "next";
    if (journal === this.#tail.journal && idx > this.#tail.idx + limits.batchesInFlightMax)
      throw new JournalDamagedError(
        `segment ${number} goes from batch ${this.#tail.idx} to ${idx} at record ${this.#position}: batches are missing`,
      );
    return "superseded";
  }

  #continues({ journal, prev, idx }: BatchHeader): boolean {
    return journal === this.#tail.journal && prev === this.#tail.hash && idx === this.#tail.idx + 1;
  }

  #skip(isForeign: boolean): Verdict {
    if (isForeign) this.metForeign();
    return { kind: "skipped", isForeign };
  }

  #apply(batch: Batch, hash: string): void {
    const idx = batchIndex(batch.idx);
    const { state } = this;
    try {
      if (batch.at < state.at)
        throw new JournalDamagedError(`it is ${state.at - batch.at} ms earlier than the previous batch`);
      if (batch.events[0] !== undefined) passTo(state, batch.at, batch.events[0]);
      state.idx = idx;
      for (const event of batch.events) apply(state, event, { at: batch.at, idx });
    } catch (cause) {
      this.#unfit = new UnfitBatchError(
        `batch ${batch.idx} does not fit the batches before it: the journal is damaged, or a newer version wrote it`,
        { cause },
      );
      throw this.#unfit;
    }
    this.#advance(batch, hash);
  }

  #advance({ journal, term, idx }: BatchHeader, hash: string): void {
    this.#tail = { journal, term, idx, hash };
    this.recent.add(idx, hash);
  }
}
