// The content of a journal in memory: counted, read as events, and written by an absent coordinator.

import { batchIndex, instant, term } from "../../src/ids.ts";
import { liveIn } from "../../src/journal/live.ts";
import type { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import {
  type ChainTail,
  decodeRecord,
  encodeBatch,
  encodeRecord,
  hashOf,
} from "../../src/journal/records.ts";
import { emptyTail, type LiveSegment } from "../../src/journal/replay.ts";
import type { Event, EventOf, EventType } from "../../src/state/event.ts";
import { ManualClock } from "./manual-clock.ts";

/** Records of all segments together. */
export function recordCount(store: MemoryJournalStore): number {
  return store.list().reduce((sum, number) => sum + (store.end(number)?.position ?? 0), 0);
}

/** The live segment with the highest number. */
export function liveOf(store: MemoryJournalStore): LiveSegment {
  for (const number of store.list().reverse()) {
    const opened = store.opened(number);
    const live = opened === undefined ? undefined : liveIn(opened, { number }, undefined);
    if (live !== undefined) return live;
  }
  throw new Error("no segment is live");
}

/** Stores a record in the live segment, like a foreign writer. @returns the record's position */
export function insertRecord(store: MemoryJournalStore, bytes: Uint8Array): number {
  return store.insert(liveOf(store).number, bytes);
}

/** The events of each batch after its segment's `Opened`, in order. */
export function storedBatches(store: MemoryJournalStore): Event[][] {
  const batches: Event[][] = [];
  for (const number of store.list())
    for (let position = (store.opened(number)?.position ?? 0) + 1; ; position += 1) {
      const record = store.read(number, position);
      if (record === undefined) break;
      const decoded = decodeRecord(record.bytes);
      if (decoded?.kind === "batch") batches.push([...decoded.events]);
    }
  return batches;
}

export function storedEvents<Type extends EventType>(store: MemoryJournalStore, type: Type): EventOf<Type>[] {
  return storedBatches(store)
    .flat()
    .filter((event): event is EventOf<Type> => event.type === type);
}

/** A second coordinator: acts on the store at once, and answers no requests. */
export class Rival {
  readonly session: string;
  readonly #store: MemoryJournalStore;

  constructor(store: MemoryJournalStore, session = "rival") {
    this.#store = store;
    this.session = session;
  }

  /** Claims the segment after the highest segment. @returns the new number */
  claim(): number {
    const number = (this.#store.list().at(-1) ?? 0) + 1;
    this.#store.create(number);
    this.#store.insert(
      number,
      encodeRecord({ kind: "claim", segment: number, session: this.session, attempt: "a" }),
    );
    return number;
  }

  /** Seals the live segment and opens the next one after a batch. @returns the term */
  takeLead(tail: ChainTail, at = ManualClock.startMs): number {
    const { number: before } = liveOf(this.#store);
    this.#store.seal(before);
    const number = this.claim();
    const { opened } = this.open(number, tail, before);
    this.start(number, tail, opened, at);
    return number;
  }

  /** The first batch of a term. @param opened hash of the segment's `Opened` @returns the new tail */
  start(number: number, after: ChainTail, opened: string, at?: number): ChainTail {
    const event: Event = {
      type: "TermStarted",
      term: term(number),
      leader: "rival",
      opened,
      timeoutMs: 3_000,
    };
    return this.batch(number, { ...after, term: term(number) }, [event], at);
  }

  /** Begins a journal with a segment, and so many batches in it. @returns the tail of the log */
  begin(batches: number, journal = "j"): ChainTail {
    const number = this.claim();
    const { opened } = this.open(number, { ...emptyTail, journal }, undefined);
    let tail = this.start(number, { ...emptyTail, journal }, opened);
    for (let n = 1; n < batches; n += 1) tail = this.batch(number, tail, [{ type: "TermRenewed" }]);
    return tail;
  }

  /** @param before the previous segment */
  open(number: number, tail: ChainTail, before: number | undefined): { readonly opened: string } {
    const bytes = encodeRecord({
      kind: "opened",
      segment: number,
      session: this.session,
      journal: tail.journal,
      term: term(number),
      leader: "rival",
      tail,
      previous: before === undefined ? undefined : { segment: before, idx: tail.idx, hash: tail.hash },
      base: undefined,
      recent: [],
    });
    this.#store.insert(number, bytes, true);
    return { opened: hashOf(bytes) };
  }

  /** The batch after a tail, in a segment. @returns the new tail */
  batch(number: number, after: ChainTail, events: readonly Event[], at = ManualClock.startMs): ChainTail {
    const idx = batchIndex(after.idx + 1);
    const header = {
      journal: after.journal,
      session: this.session,
      term: after.term,
      idx,
      prev: after.hash,
      at: instant(at),
    };
    const bytes = encodeBatch(
      header,
      events.map((event) => JSON.stringify(event)),
    );
    this.#store.insert(number, bytes);
    return { journal: after.journal, term: after.term, idx, hash: hashOf(bytes) };
  }
}
