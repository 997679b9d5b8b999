// The fold of a journal's records into state, and the rule of which records count.
//
// A record is applied only if it continues the chain: it names this journal, `prev` is the hash of the last
// applied batch, `idx` is the next, its term is not lower, and a new term begins with `TermStarted`. Any other
// record is dead: a rival's second batch that landed behind a refused first one, a deposed leader's late append,
// something alien. Everybody skips the same ones, because the rule reads nothing but the journal (design
// section 6). A dead record still takes its sequence, which the next append must expect.
//
// `at` never decreases along applied batches; one that does is damage and not death: its writer was us.

import { apply } from "../core/apply.ts";
import { emptyState, type SwarmState } from "../core/state.ts";
import { JournalDamagedError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Term } from "../ids.ts";
import { type Batch, decodeBatch, hashOf } from "./batch.ts";
import type { JournalRecord } from "./journal.ts";

/** Up to where a journal has been read, and what the next batch must build on. */
export interface ChainPosition {
  /** Sequence of the last record, dead ones included; 0 before the first. */
  readonly seq: number;
  /** Of the last applied batch. */
  readonly idx: BatchIndex;
  readonly term: Term;
  /** Hash of the last applied batch; empty before the first. */
  readonly hash: string;
  /** Identity of the journal; empty before the first batch. */
  readonly journal: string;
}

export type Verdict = { readonly kind: "applied"; readonly batch: Batch } | { readonly kind: "dead"; readonly reason: DeadReason };
export type DeadReason = "alien" | "other-journal" | "broken-chain" | "lower-term" | "no-term-start";

/** Folds records, in order, into a state of its own. */
export class Replay {
  readonly state: SwarmState = emptyState();
  deadRecords = 0;
  #seq = 0;
  #hash = "";
  #journal = "";

  get position(): ChainPosition {
    return { seq: this.#seq, idx: this.state.idx, term: this.state.term, hash: this.#hash, journal: this.#journal };
  }

  /** Applies a record, or finds it dead.
   *  @throws JournalDamagedError when a record is missing before it, or its events do not fit */
  take(record: JournalRecord): Verdict {
    this.#expectNext(record.seq);
    this.#seq = record.seq;
    const batch = decodeBatch(record.bytes);
    const dead = batch === undefined ? "alien" : this.#deathOf(batch);
    if (batch === undefined || dead !== undefined) {
      this.deadRecords += 1;
      return { kind: "dead", reason: dead ?? "alien" };
    }
    this.#apply(batch, record);
    return { kind: "applied", batch };
  }

  /** Notes a batch of our own that was decided on this very state and is now stored. */
  adopt(record: JournalRecord, hash: string, journal: string): void {
    this.#seq = record.seq;
    this.#hash = hash;
    this.#journal = journal;
  }

  #expectNext(seq: number): void {
    const isFirst = this.#seq === 0;
    if (isFirst ? seq === 1 : seq === this.#seq + 1) return;
    throw new JournalDamagedError(
      `the journal goes from record ${this.#seq} to ${seq}: records are missing. Restore the journal's storage, or start a new swarm`,
    );
  }

  #deathOf(batch: Batch): DeadReason | undefined {
    if (this.#journal !== "" && batch.journal !== this.#journal) return "other-journal";
    if (batch.prev !== this.#hash || batch.idx !== this.state.idx + 1) return "broken-chain";
    if (batch.term < this.state.term) return "lower-term";
    const starts = batch.events[0]?.type === "TermStarted";
    return batch.term > this.state.term && !starts ? "no-term-start" : undefined;
  }

  #apply(batch: Batch, record: JournalRecord): void {
    const idx = batchIndex(batch.idx);
    try {
      this.state.at = batch.at;
      this.state.idx = idx;
      for (const event of batch.events) apply(this.state, event, { at: batch.at, idx });
    } catch (cause) {
      throw new JournalDamagedError(
        `batch ${batch.idx} (record ${record.seq}) does not fit what stands before it: the journal is damaged, or a newer version wrote it`,
        { cause },
      );
    }
    this.#hash = hashOf(record.bytes);
    this.#journal = batch.journal;
  }
}
