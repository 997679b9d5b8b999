// A journal in memory, for simulation and tests; gone with the process. One store is what a server is to
// the others: several coordinators open it, each through a way of its own that can be made to fail.
//
// The one thing to know: an append makes two journeys, the request to the store and the answer back.
// `MemoryJournalFaults` has one hook for each, asked in the order of the calls; a promise holds the journey,
// and the requests behind it, for as long as the test or the simulated clock likes.

import { assert } from "../assert.ts";
import { JournalDamagedError, UnreachableError } from "../errors.ts";
import { Bell } from "./bell.ts";
import type {
  AppendOutcome,
  Durability,
  Journal,
  JournalPosition,
  JournalRecord,
  JournalUsage,
} from "./journal.ts";
import { closedError, holeError, purgedError, rewrittenError, shrunkError } from "./journal-errors.ts";

export interface MemoryAppend {
  readonly bytes: Uint8Array;
  readonly expectedSeq: number;
}

export type RequestFate =
  | "deliver"
  /** Never reaches the store; the writer is told `unknown`. */
  | "lose"
  /** The writer is told `unknown` at once; the store gets it when `until` resolves. Nothing waits behind it. */
  | { readonly kind: "late"; readonly until: Promise<void> }
  /** Answered without reaching the store. */
  | Extract<AppendOutcome, { readonly kind: "full" | "unknown" }>;

/** `lose`: the store did what it did, and the writer is told `unknown`. */
export type AnswerFate = "deliver" | "lose";

export interface MemoryJournalFaults {
  onRequest?(append: MemoryAppend): RequestFate | Promise<RequestFate>;
  onAnswer?(append: MemoryAppend, outcome: AppendOutcome): AnswerFate | Promise<AnswerFate>;
}

export interface MemoryStoreOptions {
  /** Default: unbounded. */
  readonly bytesMax?: number;
}

/** What the handles share. Everything here happens at once and never fails. */
export class MemoryJournalStore {
  readonly #bytesMax: number | undefined;
  readonly #changes = new Bell();
  /** From `#firstSeq` on; undefined where a record was lost. The first is never undefined. */
  #records: (JournalRecord | undefined)[] = [];
  #firstSeq = 1;
  /** How many of `#records` are there. */
  #held = 0;
  #bytes = 0;

  constructor({ bytesMax }: MemoryStoreOptions = {}) {
    this.#bytesMax = bytesMax;
  }

  open(faults: MemoryJournalFaults = {}): MemoryJournal {
    return new MemoryJournal(this, faults);
  }

  /** A record that somebody else stores now, whatever is under way. Returns its position. */
  insertRival(bytes: Uint8Array): number {
    const outcome = this.append({ bytes, expectedSeq: this.lastSeq });
    if (outcome.kind !== "stored")
      throw new JournalDamagedError(`a rival's record was answered ${outcome.kind}`);
    return outcome.seq;
  }

  /** The end of the journal is lost, as after a power failure. */
  loseTail(count: number): void {
    this.#forget(this.#records.splice(-count, count));
  }

  /** Records from `seq` on are lost under an unchanged last sequence, as after a power failure: a hole. Whose first
   *  records are lost begins later, as a stream does. */
  loseMiddle(seq: number, count: number): void {
    const start = seq - this.#firstSeq;
    const end = Math.min(start + count, this.#records.length);
    assert(start >= 0, "what is lost was there");
    const lost = this.#records.slice(start, end);
    this.#records.fill(undefined, start, end);
    this.#dropLeadingHoles();
    this.#forget(lost);
  }

  /** Everything below `seq` is removed, the last record too when it lies there. */
  purgeBelow(seq: number): void {
    const purged = this.#records.splice(0, Math.max(seq - this.#firstSeq, 0));
    this.#firstSeq += purged.length;
    this.#dropLeadingHoles();
    this.#forget(purged);
  }

  append({ bytes, expectedSeq }: MemoryAppend): AppendOutcome {
    if (expectedSeq !== this.lastSeq) return { kind: "refused" };
    if (this.#bytesMax !== undefined && this.#bytes + bytes.length > this.#bytesMax) {
      return { kind: "full", message: `the journal would exceed its ${this.#bytesMax} bytes` };
    }
    const seq = expectedSeq + 1;
    this.#records.push({ seq, bytes: bytes.slice() });
    this.#held += 1;
    this.#bytes += bytes.length;
    this.#changes.ring();
    return { kind: "stored", seq };
  }

  at(seq: number): JournalRecord | undefined {
    return this.#records[seq - this.#firstSeq];
  }

  get firstSeq(): number {
    return this.#firstSeq;
  }

  get lastSeq(): number {
    return this.#firstSeq + this.#records.length - 1;
  }

  /** How many records are lost between the first and the last. */
  get missing(): number {
    return this.#records.length - this.#held;
  }

  get usage(): JournalUsage {
    return { bytes: this.#bytes, bytesMax: this.#bytesMax };
  }

  /** Resolves at the next change of the store, or of whether a handle reaches it. */
  changed(signal: AbortSignal): Promise<void> {
    return this.#changes.wait(signal);
  }

  /** Wakes whoever waits for a change, to look again. */
  stir(): void {
    this.#changes.ring();
  }

  #dropLeadingHoles(): void {
    const kept = this.#records.findIndex((record) => record !== undefined);
    const holes = kept === -1 ? this.#records.length : kept;
    this.#records.splice(0, holes);
    this.#firstSeq += holes;
  }

  #forget(records: readonly (JournalRecord | undefined)[]): void {
    for (const record of records) {
      if (record === undefined) continue;
      this.#held -= 1;
      this.#bytes -= record.bytes.length;
    }
    this.#changes.ring();
  }
}

/** One coordinator's way to a store. */
export class MemoryJournal implements Journal {
  readonly sharable = true;
  readonly durability: Durability = {
    class: "memory",
    sentence: "The journal is in memory: everything is lost when this process ends.",
  };
  readonly #store: MemoryJournalStore;
  readonly #faults: MemoryJournalFaults;
  readonly #underWay = new Set<(outcome: AppendOutcome) => void>();
  #requests: Promise<void> = Promise.resolve();
  #isCutOff = false;
  #isClosed = false;

  constructor(store: MemoryJournalStore, faults: MemoryJournalFaults) {
    this.#store = store;
    this.#faults = faults;
  }

  /** While cut off, appends are lost and end `unknown`, questions throw UnreachableError, `follow` waits. */
  setCutOff(isCutOff: boolean): void {
    this.#isCutOff = isCutOff;
    this.#store.stir();
  }

  async position(): Promise<JournalPosition> {
    this.#reach();
    const { firstSeq, lastSeq, missing } = this.#store;
    return lastSeq === 0 ? { firstSeq: 0, lastSeq: 0, missing } : { firstSeq, lastSeq, missing };
  }

  append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome> {
    if (this.#isClosed) return Promise.resolve({ kind: "unknown", cause: closedError() });
    return new Promise((resolve) => {
      this.#underWay.add(resolve);
      void this.#carry({ bytes, expectedSeq }).then((outcome) => {
        this.#underWay.delete(resolve);
        resolve(outcome);
      });
    });
  }

  async read(seq: number): Promise<JournalRecord | undefined> {
    this.#reach();
    return this.#store.at(seq);
  }

  async *replay(fromSeq: number): AsyncGenerator<JournalRecord> {
    this.#reach();
    const { lastSeq } = this.#store;
    for (let seq = fromSeq; seq <= lastSeq; seq++) {
      this.#reach();
      yield this.#demand(seq);
    }
  }

  async *follow(fromSeq: number, signal: AbortSignal, before?: JournalRecord): AsyncGenerator<JournalRecord> {
    let previous = before;
    for (let seq = fromSeq; ; seq++) {
      while (this.#isCutOff || seq > this.#store.lastSeq) {
        if (signal.aborted || this.#isClosed) return;
        await this.#store.changed(signal);
      }
      if (signal.aborted || this.#isClosed) return;
      if (previous !== undefined && previous !== this.#store.at(previous.seq)) this.#explainChange(previous);
      previous = this.#demand(seq);
      yield previous;
    }
  }

  async purgeBelow(seq: number): Promise<void> {
    this.#reach();
    this.#store.purgeBelow(Math.min(seq, this.#store.lastSeq));
  }

  async purgeThrough(seq: number): Promise<boolean> {
    this.#reach();
    if (seq !== this.#store.lastSeq) return false;
    this.#store.purgeBelow(seq + 1);
    return true;
  }

  async usage(): Promise<JournalUsage> {
    this.#reach();
    return this.#store.usage;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const settle of this.#underWay) settle({ kind: "unknown", cause: closedError() });
    this.#underWay.clear();
    this.#store.stir();
  }

  async #carry(append: MemoryAppend): Promise<AppendOutcome> {
    const arrival = this.#requests.then(() => this.#request(append));
    this.#requests = arrival.then(() => undefined);
    const outcome = await arrival;
    if (outcome.kind === "unknown") return outcome;
    const fate = (await this.#faults.onAnswer?.(append, outcome)) ?? "deliver";
    return fate === "deliver" && !this.#isCutOff ? outcome : lost("the answer was lost");
  }

  async #request(append: MemoryAppend): Promise<AppendOutcome> {
    const fate = (await this.#faults.onRequest?.(append)) ?? "deliver";
    if (fate === "lose" || this.#isCutOff) return lost("the request was lost");
    if (fate === "deliver") return this.#store.append(append);
    if (fate.kind !== "late") return fate;
    void fate.until.then(() => this.#store.append(append));
    return lost("the request is late");
  }

  #demand(seq: number): JournalRecord {
    const record = this.#store.at(seq);
    if (record !== undefined) return record;
    const { firstSeq, lastSeq } = this.#store;
    if (seq < firstSeq) throw purgedError(seq, firstSeq);
    throw seq <= lastSeq ? holeError(seq, lastSeq) : shrunkError(lastSeq, seq);
  }

  /** The record a follower read last is not there any more: purged behind him is fine, replaced is not. */
  #explainChange({ seq, bytes }: JournalRecord): void {
    const present = this.#store.at(seq);
    if (present !== undefined && Buffer.compare(present.bytes, bytes) !== 0) throw rewrittenError(seq);
  }

  #reach(): void {
    if (this.#isClosed) throw closedError();
    if (this.#isCutOff) throw new UnreachableError("the way to the journal in memory is cut off");
  }
}

function lost(sentence: string): AppendOutcome {
  return { kind: "unknown", cause: new UnreachableError(sentence) };
}
