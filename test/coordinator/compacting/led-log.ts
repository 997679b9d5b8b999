// A log with its leader, without a coordinator: turns of the core, each a batch in the leader's segment. The leader
// goes on in a next segment as a coordinator does.

import { expect } from "vitest";
import type { Clock } from "../../../src/clock.ts";
import type { MadeSegment, MakeOrder } from "../../../src/coordinator/compacting/make-next-segment.ts";
import { baseMakerHere } from "../../../src/coordinator/compacting/make-next-segment.ts";
import type { Command } from "../../../src/core/command.ts";
import type { RecordedEvent } from "../../../src/core/step.ts";
import { batchIndex, type Term, taskId } from "../../../src/ids.ts";
import type { Journal } from "../../../src/journal/journal.ts";
import { findLive } from "../../../src/journal/live.ts";
import { restore } from "../../../src/journal/log.ts";
import { MemoryJournal, type MemoryJournalFaults } from "../../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../../src/journal/memory-store.ts";
import { type ChainTail, encodeBatch, encodeRecord, hashOf } from "../../../src/journal/records.ts";
import { emptyTail, type LiveSegment } from "../../../src/journal/replay.ts";
import { SegmentWriter } from "../../../src/journal/segment-writer.ts";
import { fingerprint } from "../../support/fingerprint.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { submit, Turns } from "../../support/turns.ts";

export const SESSION = "session-1";

/** A journal on a server with a page cache. */
function inPageCache(journal: MemoryJournal): MemoryJournal {
  Object.defineProperty(journal, "durability", { value: { class: "page-cache", sentence: "" } });
  return journal;
}

export class LedLog {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly turns = new Turns();
  /** As the leader opened or continued the segment. */
  live!: LiveSegment;
  tail: ChainTail = emptyTail;
  /** Of the newest committed batch. */
  committedIdx = 0;
  /** Called with each batch. */
  onBatch: (recorded: readonly RecordedEvent[], bytes: number) => void = () => undefined;
  #writer!: SegmentWriter;
  readonly #bytesByIdx = new Map<number, Uint8Array>();
  #eventsWritten = 0;
  #tasks = 0;

  constructor(journal: Journal, clock: Clock) {
    this.journal = journal;
    this.clock = clock;
  }

  /** Opens segment 1, with the first batch of the term. */
  async begin(): Promise<this> {
    await this.journal.create(1);
    this.#writer = this.writerOf(1, 0);
    await this.#writer.put(
      encodeRecord({ kind: "claim", segment: 1, session: SESSION, attempt: "attempt-1" }),
    );
    await this.#open(1, undefined);
    await this.#write();
    return this;
  }

  writerOf(number: number, position: number, journal: Journal = this.journal): SegmentWriter {
    const { signal } = new AbortController();
    return new SegmentWriter({
      segment: journal.segment(number),
      session: SESSION,
      position,
      clock: this.clock,
      signal,
    });
  }

  /** The leader's segment. */
  get number(): number {
    return this.live.number;
  }

  /** Runs a turn; its batch is stored and committed. */
  async turn(...commands: readonly Command[]): Promise<void> {
    this.turns.turn(...commands);
    await this.#write();
  }

  /** So many turns, each with a new task. @param payloadBytes of each */
  async submit(count: number, payloadBytes = 0): Promise<void> {
    for (let each = 0; each < count; each += 1) {
      this.#tasks += 1;
      await this.turn(submit({ id: taskId(`t${this.#tasks}`), payload: "x".repeat(payloadBytes) }));
    }
  }

  /** Stores one more batch without a commit. */
  async submitUncommitted(): Promise<void> {
    const { committedIdx } = this;
    await this.submit(1);
    this.committedIdx = committedIdx;
  }

  order(number: number, overrides: Partial<MakeOrder> = {}): MakeOrder {
    return {
      number,
      session: SESSION,
      attempt: "attempt-1",
      ledSegment: this.number,
      committedIdx: () => this.committedIdx,
      bytesMax: Number.POSITIVE_INFINITY,
      ...overrides,
    };
  }

  /** Made from the store, whatever ails the leader's handle. */
  make(number: number, journal: Journal = this.journal): Promise<MadeSegment> {
    const { signal } = new AbortController();
    return baseMakerHere({ journal, clock: this.clock }).make(this.order(number), signal);
  }

  /** As in leader/segment-change.ts. */
  async changeTo({ number, position, base, copiedIdx }: MadeSegment): Promise<void> {
    const { tail } = this;
    const previous = { segment: this.number, idx: tail.idx, hash: tail.hash };
    await this.#writer.put(
      encodeRecord({ kind: "closing", segment: this.number, session: SESSION, reason: "next-segment" }),
    );
    await this.journal.segment(this.number).seal();
    this.#writer = this.writerOf(number, position);
    for (let idx = copiedIdx + 1; idx <= tail.idx; idx += 1)
      await this.#writer.put(this.#bytesByIdx.get(idx) ?? new Uint8Array());
    await this.#open(number, base, previous);
  }

  /** Makes a segment and goes on in the segment. */
  async change(): Promise<void> {
    await this.changeTo(await this.make(Math.max(...(await this.journal.list())) + 1));
  }

  /** Goes on in a segment that continues the last by reference, as a new term does. */
  async continueIn(number: number): Promise<void> {
    const { tail } = this;
    const previous = { segment: this.number, idx: tail.idx, hash: tail.hash };
    await this.journal.segment(this.number).seal();
    await this.journal.create(number);
    this.#writer = this.writerOf(number, 0);
    await this.#writer.put(
      encodeRecord({ kind: "claim", segment: number, session: SESSION, attempt: "attempt-1" }),
    );
    await this.#open(number, undefined, previous);
  }

  /** A restart reads the leader's state. */
  async expectWhole(journal: Journal = this.journal): Promise<void> {
    const { live } = await findLive(journal);
    if (live === undefined) throw new Error("no segment is live");
    const { state, tail } = await restore(live, { journal, clock: this.clock });
    expect(tail).toEqual(this.tail);
    expect(fingerprint(state)).toBe(fingerprint(this.turns.state));
  }

  async #open(
    number: number,
    base: MadeSegment["base"] | undefined,
    previous?: LiveSegment["opened"]["previous"],
  ): Promise<void> {
    const opened: LiveSegment["opened"] = {
      kind: "opened",
      segment: number,
      session: SESSION,
      journal: "j",
      term: 1 as Term,
      leader: "c1",
      tail: this.tail,
      previous,
      base,
      recent: [],
    };
    await this.#writer.put(encodeRecord(opened), { isOpened: true });
    const { live } = await findLive(this.journal);
    if (live?.number !== number) throw new Error(`segment ${number} is live`);
    this.live = live;
  }

  /** Decisions of the last turn. */
  async #write(): Promise<void> {
    const events = this.turns.events.slice(this.#eventsWritten);
    this.#eventsWritten = this.turns.events.length;
    if (events.length === 0) return;
    const idx = batchIndex(this.tail.idx + 1);
    const { at, state } = this.turns;
    const header = { journal: "j", session: SESSION, term: 1 as Term, idx, prev: this.tail.hash, at };
    const bytes = encodeBatch(
      header,
      events.map((event) => JSON.stringify(event)),
    );
    expect(state.idx).toBe(idx);
    await this.#writer.put(bytes);
    this.#bytesByIdx.set(idx, bytes);
    this.tail = { journal: "j", term: 1 as Term, idx, hash: hashOf(bytes) };
    this.committedIdx = idx;
    this.onBatch(
      events.map((event) => ({
        event,
        project: "",
        kind: undefined,
        from: 0,
        to: 0,
        contentsFrom: 0,
        contentsTo: 0,
      })),
      bytes.length,
    );
  }
}

/** In memory, on a manual clock. */
export class MemoryLedLog extends LedLog {
  declare readonly clock: ManualClock;
  declare readonly journal: MemoryJournal;
  readonly store: MemoryJournalStore;

  private constructor(store: MemoryJournalStore, faults: MemoryJournalFaults, clock: ManualClock) {
    super(inPageCache(new MemoryJournal(store, faults)), clock);
    this.store = store;
  }

  /** @param faults of the leader's handle */
  static async start(faults: MemoryJournalFaults = {}, bytesMax?: number): Promise<MemoryLedLog> {
    const clock = new ManualClock();
    const store = new MemoryJournalStore({ clock, ...(bytesMax === undefined ? {} : { bytesMax }) });
    return await new MemoryLedLog(store, faults, clock).begin();
  }

  override expectWhole(): Promise<void> {
    return super.expectWhole(new MemoryJournal(this.store));
  }
}
