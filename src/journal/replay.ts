// The fold of a journal's records into state, and the rule that decides which records count.
//
// A batch is applied only if it continues the log: it names this journal, `prev` is the hash of the last applied batch,
// `idx` is the next, and it was written by the segment's writer in the segment's term; a batch before the segment's
// `Opened` is a copy, and the chain alone vouches for it. Every other record is skipped. All readers skip the same
// records, because the rule reads nothing but the journal.
//
// Damage is what the rule cannot explain: a record that is missing, a batch of the segment's writer from further on
// than a leader has in flight, a batch that is earlier than the one before it, an event that does not fit the
// state. Behind a batch that does not fit no replay goes on: its state may contain a part of that batch.

import { apply } from "../core/apply.ts";
import { JournalDamagedError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../ids.ts";
import { limits } from "../limits.ts";
import { passTo } from "../state/journal-time.ts";
import { emptyState, type SwarmState } from "../state/state.ts";
import type { SegmentRecord } from "./journal.ts";
import { RecentHashes } from "./recent-hashes.ts";
import { type Batch, type ChainTail, type Closing, decodeRecord, hashOf, type Opened } from "./records.ts";

export type Verdict =
  | { readonly kind: "applied"; readonly batch: Batch }
  | { readonly kind: "closing"; readonly closing: Closing }
  /** `foreign`: no coordinator of this journal wrote it. Else a batch that another one superseded, or a record that
   *  says nothing here. */
  | { readonly kind: "skipped"; readonly isForeign: boolean };

/** Records that no coordinator of this journal wrote. */
export interface ForeignRecords {
  readonly count: number;
  /** Journal time of the batch before the last of them. */
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
  /** `hashOf` that record. */
  readonly openedHash: string;
  /** Of that record. */
  readonly position: number;
}

export const emptyTail: ChainTail = { journal: "", term: 0 as Term, idx: 0 as BatchIndex, hash: "" };

/** A batch continues the log and does not fit its state: a newer version wrote it, or the journal is damaged. */
export class UnfitBatchError extends JournalDamagedError {}

export interface FoldedLog {
  readonly state: SwarmState;
  readonly tail: ChainTail;
  readonly recent?: RecentHashes;
}

export class Replay {
  readonly state: SwarmState;
  /** Of the newest applied batches. */
  readonly recent: RecentHashes;
  #foreign: ForeignRecords | undefined;
  #tail: ChainTail;
  #live: LiveSegment | undefined;
  #position = 0;
  /** Of the last record read in this segment; empty where none was read. */
  #recordHash = "";
  #closing: Closing | undefined;
  #isAhead = false;
  #unfit: UnfitBatchError | undefined;

  /** @param from what was folded before; its state becomes this one's. Default: nothing */
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

  /** The segment that is being read. */
  get live(): LiveSegment | undefined {
    return this.#live;
  }

  /** Met by this replay; undefined while there was none. */
  get foreign(): ForeignRecords | undefined {
    return this.#foreign;
  }

  /** The writer's own end of the segment, once read. */
  get closing(): Closing | undefined {
    return this.#closing;
  }

  /** Whether it holds acknowledged batches that the segment, as far as it was read, does not show. */
  get isAhead(): boolean {
    return this.#isAhead;
  }

  /** `hashOf` the last record read in this segment; empty where none was read. */
  get recordHash(): string {
    return this.#recordHash;
  }

  /** Reads on in a segment, behind a position. @throws JournalDamagedError when the segment is of another journal */
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

  /** The writer of the segment goes on from what it decided and stored: its state contains the batches up to `tail`. */
  continueAt(tail: ChainTail, position: number, recordHash: string): void {
    this.#tail = tail;
    this.#position = position;
    this.#recordHash = recordHash;
  }

  /** A record stands in the segment that no coordinator of this journal wrote. */
  metForeign(): void {
    this.#foreign = { count: (this.#foreign?.count ?? 0) + 1, lastAt: this.state.at };
  }

  /** Applies a batch that is known to be committed, wherever it stands. @throws JournalDamagedError where it does not
   *  continue the log */
  takeCommitted(batch: Batch, hash: string): void {
    if (this.#tail.journal === "") this.#tail = { ...this.#tail, journal: batch.journal };
    if (!this.#continues(batch))
      throw new JournalDamagedError(`batch ${batch.idx} does not continue batch ${this.#tail.idx}`);
    this.#apply(batch, hash);
    this.#isAhead = true;
  }

  /** Applies the next record of the segment, or skips it. @throws JournalDamagedError; UnfitBatchError, from then
   *  on always */
  take(record: SegmentRecord): Verdict {
    const live = this.#requireNext(record);
    const decoded = decodeRecord(record.bytes);
    this.#position = record.position;
    const hash = hashOf(record.bytes);
    this.#recordHash = hash;
    if (decoded?.kind === "batch") return this.#takeBatch(decoded, hash, live);
    if (decoded?.kind === "closing" && decoded.life === live.opened.life) {
      this.#closing = decoded;
      return { kind: "closing", closing: decoded };
    }
    if (record.position === live.position) this.#requireCopies(live);
    return this.#skip(decoded === undefined || decoded.life !== live.opened.life);
  }

  #requireNext({ position }: SegmentRecord): LiveSegment {
    if (this.#unfit !== undefined) throw this.#unfit;
    if (this.#live === undefined) throw new JournalDamagedError("no segment was entered");
    if (position === this.#position + 1) return this.#live;
    throw new JournalDamagedError(
      `segment ${this.#live.number} goes from record ${this.#position} to ${position}: records are missing`,
    );
  }

  /** A base and its copies reach as far as the segment's `Opened` says. */
  #requireCopies({ number, opened }: LiveSegment): void {
    const { idx, hash } = opened.tail;
    if (this.#tail.idx === idx && this.#tail.hash === hash) return;
    throw new JournalDamagedError(
      `segment ${number} was opened behind batch ${idx}, and its base and copies end with batch ${this.#tail.idx}`,
    );
  }

  #takeBatch(batch: Batch, hash: string, live: LiveSegment): Verdict {
    const { opened, number } = live;
    if (hash === this.#tail.hash) this.#isAhead = false;
    const isCopy = this.#position < live.position;
    const isOfWriter = batch.life === opened.life && batch.term === opened.term;
    if (!isCopy && !isOfWriter) return this.#skip(batch.journal !== this.#tail.journal);
    if (this.#continues(batch)) {
      this.#apply(batch, hash);
      return { kind: "applied", batch };
    }
    if (batch.journal === this.#tail.journal && batch.idx > this.#tail.idx + limits.batchesInFlightMax)
      throw new JournalDamagedError(
        `segment ${number} goes from batch ${this.#tail.idx} to ${batch.idx} at record ${this.#position}: batches are missing`,
      );
    return this.#skip(false);
  }

  #continues({ journal, prev, idx }: Batch): boolean {
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
        throw new JournalDamagedError(`it is ${state.at - batch.at} ms earlier than the batch before it`);
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
    this.#tail = { journal: batch.journal, term: batch.term, idx, hash };
    this.recent.add(idx, hash);
  }
}
