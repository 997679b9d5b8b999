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
import { JournalDamagedError, MissingRecordsError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventType } from "../state/event.ts";
import { passTo } from "../state/journal-time.ts";
import { emptyState, type SwarmState } from "../state/state.ts";
import { type Batch, decodeBatch, hashOf } from "./batch.ts";
import { BatchPlaces } from "./batch-places.ts";
import type { JournalRecord } from "./journal.ts";

/** The last applied batch, which the next one must continue. */
export interface ChainTail {
  /** 0 before the first. */
  readonly idx: BatchIndex;
  readonly term: Term;
  /** Hash of the last applied batch; empty before the first. */
  readonly hash: string;
  /** Identity of the journal; empty before the first batch. */
  readonly journal: string;
}

/** Up to where a journal has been read. */
export interface ChainPosition extends ChainTail {
  /** Sequence of the last record, dead ones included; 0 before the first. */
  readonly seq: number;
}

export type Verdict =
  | { readonly kind: "applied"; readonly batch: Batch }
  | { readonly kind: "dead"; readonly reason: DeadReason };
export type DeadReason = "alien" | "other-journal" | "broken-chain" | "lower-term" | "no-term-start";

/** Records that no coordinator of this journal wrote: somebody else may. */
export interface AlienRecords {
  readonly count: number;
  /** Journal time of the batch before the last of them. */
  readonly lastAt: Instant;
}

/** Whether no coordinator of this journal wrote it; else a former leader left it behind. */
export function isAlien(reason: DeadReason): boolean {
  return reason === "alien" || reason === "other-journal";
}

/** Why a batch is not the one that follows `tail`, or undefined when it is. Everybody asks this one function. */
export function deathOf(batch: Batch, tail: ChainTail): DeadReason | undefined {
  if (tail.journal !== "" && batch.journal !== tail.journal) return "other-journal";
  if (batch.prev !== tail.hash || batch.idx !== tail.idx + 1) return "broken-chain";
  if (batch.term < tail.term) return "lower-term";
  const startsTerm = batch.events[0]?.type === "TermStarted";
  return batch.term > tail.term && !startsTerm ? "no-term-start" : undefined;
}

/** Whether a batch that does not follow `tail` says that others stood before it: of a later term than anything before
 *  it, or further on than what a leader has in flight. */
export function isBehindMore({ term, idx }: Batch, tail: Pick<ChainTail, "term" | "idx">): boolean {
  const isFurther = term === tail.term && idx > tail.idx + limits.batchesInFlightMax;
  return term > tail.term || isFurther;
}

/** A fold of a journal up to some record: what a snapshot holds, and what a replay goes on from. */
export interface Folded {
  readonly state: SwarmState;
  /** `seq` is that of the record behind which the journal goes on. */
  readonly position: ChainPosition;
  /** Of the last applied batch's last event. */
  readonly lastEventType: EventType | undefined;
  readonly places: BatchPlaces;
  /** Records ever found dead. */
  readonly deadRecords: number;
  /** Those of them that are alien; undefined while there was none. */
  readonly alienRecords: AlienRecords | undefined;
}

/** The same, to go on behind a record: what stood there before was lost, or never stored. */
export function foldedBehind(
  { state, position, lastEventType, places, deadRecords, alienRecords }: Folded,
  seq: number,
): Folded {
  return { state, position: { ...position, seq }, lastEventType, places, deadRecords, alienRecords };
}

/** Whether a record is the batch that stood there, as far as that is known: of what stands before a snapshot the hash
 *  is not. */
export function stoodThere(
  { seq, bytes }: JournalRecord,
  { places, position }: Pick<Folded, "places" | "position">,
): boolean {
  const batch = decodeBatch(bytes);
  if (batch === undefined || places.idxAt(seq) !== batch.idx) return false;
  const { idx, term, journal } = batch;
  const hash = hashOf(bytes);
  const isIt = idx === position.idx ? hash === position.hash : places.isBatch(idx, hash);
  return isIt ?? (journal === position.journal && term <= position.term);
}

/** What was read since a replay began. */
export interface Tail {
  /** The batch behind which it began. */
  readonly fromIdx: BatchIndex;
  readonly events: number;
  readonly bytes: number;
}

/** Folds records, in order, into a state of its own. */
export class Replay implements Folded {
  readonly state: SwarmState;
  readonly places: BatchPlaces;
  lastEventType: EventType | undefined;
  deadRecords: number;
  alienRecords: AlienRecords | undefined;
  /** Where a record was met that does not continue what was read, and is of a later term, whose first one always
   *  does, or further on than what a leader has in flight: the line went on behind batches that are missing here.
   *  Nobody leads from there. */
  strayedAtSeq: number | undefined;
  readonly #fromIdx: BatchIndex;
  #tailEvents = 0;
  #tailBytes = 0;
  #seq: number;
  #hash: string;
  #journal: string;

  /** @param from what was folded before, whose state becomes this one's; default: nothing, the first record is next */
  constructor(from?: Folded) {
    this.state = from?.state ?? emptyState();
    this.places = from?.places ?? new BatchPlaces();
    this.lastEventType = from?.lastEventType;
    this.deadRecords = from?.deadRecords ?? 0;
    this.alienRecords = from?.alienRecords;
    this.#fromIdx = this.state.idx;
    this.#seq = from?.position.seq ?? 0;
    if (from !== undefined) this.places.goOnBehind(from.position.seq);
    this.#hash = from?.position.hash ?? "";
    this.#journal = from?.position.journal ?? "";
  }

  get position(): ChainPosition {
    return {
      seq: this.#seq,
      idx: this.state.idx,
      term: this.state.term,
      hash: this.#hash,
      journal: this.#journal,
    };
  }

  get tail(): Tail {
    return { fromIdx: this.#fromIdx, events: this.#tailEvents, bytes: this.#tailBytes };
  }

  /** Applies a record, or finds it dead.
   *  @throws JournalDamagedError when a record is missing before it, or its events do not fit */
  take(record: JournalRecord): Verdict {
    this.#expectNext(record.seq);
    this.#seq = record.seq;
    const batch = decodeBatch(record.bytes);
    const dead = batch === undefined ? "alien" : deathOf(batch, this.position);
    if (batch === undefined || dead !== undefined) {
      this.sawDead(record, dead ?? "alien");
      if (batch !== undefined && dead === "broken-chain" && isBehindMore(batch, this.state))
        this.strayedAtSeq ??= record.seq;
      return { kind: "dead", reason: dead ?? "alien" };
    }
    this.#apply(batch, record);
    return { kind: "applied", batch };
  }

  /** Takes note of a record that was found dead, here or by somebody else. */
  sawDead(record: JournalRecord, reason: DeadReason): void {
    this.deadRecords += 1;
    if (!isAlien(reason) && stoodThere(record, this)) this.places.stillStands(record.seq);
    if (isAlien(reason))
      this.alienRecords = { count: (this.alienRecords?.count ?? 0) + 1, lastAt: this.state.at };
  }

  #expectNext(seq: number): void {
    if (seq === this.#seq + 1) return;
    throw new MissingRecordsError(
      `the journal goes from record ${this.#seq} to ${seq}: records are missing. Restore the journal's storage, or start a new swarm`,
    );
  }

  #apply(batch: Batch, record: JournalRecord): void {
    const idx = batchIndex(batch.idx);
    if (batch.at < this.state.at) {
      throw new JournalDamagedError(
        `batch ${batch.idx} (record ${record.seq}) is ${this.state.at - batch.at} ms earlier than the one before it: the journal is damaged`,
      );
    }
    try {
      if (batch.events[0] !== undefined) passTo(this.state, batch.at, batch.events[0]);
      this.state.idx = idx;
      for (const event of batch.events) apply(this.state, event, { at: batch.at, idx });
    } catch (cause) {
      throw new JournalDamagedError(
        `batch ${batch.idx} (record ${record.seq}) does not fit what stands before it: the journal is damaged, or a newer version wrote it`,
        { cause },
      );
    }
    this.#tailEvents += batch.events.length;
    this.#tailBytes += record.bytes.length;
    this.#hash = hashOf(record.bytes);
    this.places.add(idx, record.seq, this.#hash);
    this.lastEventType = batch.events.at(-1)?.type;
    this.#journal = batch.journal;
  }
}
