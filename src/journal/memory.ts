// A journal in memory, for simulation and tests; gone with the process. Several coordinators share one store
// (memory-store.ts). Each has a handle, whose connection a test can make fail.
//
// The one thing to know: an operation makes two journeys, the request to the store and the answer back.
// `MemoryJournalFaults` has a hook for each journey, which may return a promise. Appends, creations, seals and removals
// of a handle reach the store in the order of the calls: a held request holds later writes. Reads overtake writes.

import { UnreachableError } from "../errors.ts";
import { Listeners } from "../listeners.ts";
import { readablePositions } from "./follow.ts";
import type {
  AppendOptions,
  AppendOutcome,
  Durability,
  Journal,
  JournalUsage,
  ReplayOptions,
  Segment,
  SegmentEnd,
  SegmentRecord,
} from "./journal.ts";
import { closedError, gapError, noSegmentError, shortError } from "./journal-errors.ts";
import type { MemoryAppend, MemoryJournalStore } from "./memory-store.ts";

/** An operation under way: every call but `follow`; of `replay` only the beginning. */
export type MemoryRequest =
  | ({ readonly op: "append" } & MemoryAppend)
  | { readonly op: "create" | "seal" | "remove"; readonly segment: number }
  | { readonly op: "end" | "read" | "opened" | "replay"; readonly segment: number }
  | { readonly op: "list" | "usage" };

export type RequestFate =
  | "deliver"
  /** Never reaches the store; the caller gets `unknown` or an UnreachableError. */
  | "lose"
  /** The caller gets `unknown` or an UnreachableError at once; the store gets the request when `until` resolves. No
   *  later request waits for it. */
  | { readonly kind: "late"; readonly until: Promise<void> };

/** `lose`: the store ran the request, and the caller gets `unknown` or an UnreachableError. */
export type AnswerFate = "deliver" | "lose";

export interface MemoryJournalFaults {
  onRequest?(request: MemoryRequest): RequestFate | Promise<RequestFate>;
  onAnswer?(request: MemoryRequest): AnswerFate | Promise<AnswerFate>;
}

/** One coordinator's handle of a store. */
export class MemoryJournal implements Journal {
  readonly sharable = true;
  readonly durability: Durability = {
    class: "memory",
    sentence: "The journal is in memory: everything is lost when this process ends.",
  };
  readonly #store: MemoryJournalStore;
  readonly #connection: MemoryConnection;

  constructor(store: MemoryJournalStore, faults: MemoryJournalFaults = {}) {
    this.#store = store;
    this.#connection = new MemoryConnection(store, faults);
  }

  /** While offline, appends are lost and end `unknown`, other calls throw UnreachableError, `follow` waits. */
  setOffline(isOffline: boolean): void {
    this.#connection.setOffline(isOffline);
  }

  list(): Promise<readonly number[]> {
    return this.#connection.carry({ op: "list" }, () => this.#store.list());
  }

  segment(number: number): Segment {
    return new MemorySegment(this.#store, this.#connection, number);
  }

  create(segment: number): Promise<void> {
    return this.#connection.carry({ op: "create", segment }, () => this.#store.create(segment));
  }

  remove(segment: number): Promise<void> {
    return this.#connection.carry({ op: "remove", segment }, () => this.#store.remove(segment));
  }

  usage(): Promise<JournalUsage> {
    return this.#connection.carry({ op: "usage" }, () => this.#store.usage);
  }

  onReconnected(listener: () => void): () => void {
    return this.#connection.reconnected.add(listener);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }
}

class MemorySegment implements Segment {
  readonly number: number;
  readonly #store: MemoryJournalStore;
  readonly #connection: MemoryConnection;

  constructor(store: MemoryJournalStore, connection: MemoryConnection, number: number) {
    this.number = number;
    this.#store = store;
    this.#connection = connection;
  }

  end(): Promise<SegmentEnd | undefined> {
    return this.#connection.carry({ op: "end", segment: this.number }, () => this.#store.end(this.number));
  }

  async append(bytes: Uint8Array, expected: number, options: AppendOptions = {}): Promise<AppendOutcome> {
    const { isOpened = false } = options;
    const append = { segment: this.number, bytes: Uint8Array.from(bytes), expected, isOpened };
    try {
      return await this.#connection.carry({ op: "append", ...append }, () => this.#store.append(append));
    } catch (cause) {
      return { kind: "unknown", cause };
    }
  }

  read(position: number): Promise<SegmentRecord | undefined> {
    const read = () => this.#store.read(this.number, position);
    return this.#connection.carry({ op: "read", segment: this.number }, read);
  }

  opened(): Promise<SegmentRecord | undefined> {
    const read = () => this.#store.opened(this.number);
    return this.#connection.carry({ op: "opened", segment: this.number }, read);
  }

  async *replay(from: number, { until }: ReplayOptions = {}): AsyncGenerator<SegmentRecord> {
    const { number } = this;
    const look = () => this.#store.view(number);
    const view = await this.#connection.carry({ op: "replay", segment: number }, look);
    if (view === undefined) throw noSegmentError(number);
    const last = until ?? view.end;
    for (let position = from; position <= last; position++) {
      this.#connection.requireOnline();
      yield this.#demand(position);
    }
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<SegmentRecord> {
    const { number } = this;
    const { changes, clock } = this.#store;
    const view = () => this.#connection.state ?? this.#store.view(number);
    for await (const position of readablePositions({ number, view, changes, clock }, from, signal))
      yield this.#demand(position);
  }

  seal(): Promise<boolean> {
    return this.#connection.carry({ op: "seal", segment: this.number }, () => this.#store.seal(this.number));
  }

  #demand(position: number): SegmentRecord {
    const record = this.#store.read(this.number, position);
    if (record !== undefined) return record;
    const view = this.#store.view(this.number);
    if (view === undefined) throw noSegmentError(this.number);
    throw (position > view.end ? shortError : gapError)(this.number, position, view.end);
  }
}

/** Carries requests and answers between a handle and the store. */
class MemoryConnection {
  readonly reconnected = new Listeners();
  readonly #store: MemoryJournalStore;
  readonly #faults: MemoryJournalFaults;
  readonly #underWay = new Set<(error: UnreachableError) => void>();
  #writes: Promise<unknown> = Promise.resolve();
  #isOffline = false;
  #isClosed = false;

  constructor(store: MemoryJournalStore, faults: MemoryJournalFaults) {
    this.#store = store;
    this.#faults = faults;
  }

  /** Undefined while the connection works. */
  get state(): "offline" | "closed" | undefined {
    if (this.#isClosed) return "closed";
    return this.#isOffline ? "offline" : undefined;
  }

  setOffline(isOffline: boolean): void {
    const isReconnected = this.#isOffline && !isOffline;
    this.#isOffline = isOffline;
    this.#store.changes.ring();
    if (isReconnected) this.reconnected.notify();
  }

  close(): void {
    this.#isClosed = true;
    for (const fail of this.#underWay) fail(closedError());
    this.#underWay.clear();
    this.#store.changes.ring();
  }

  /** @throws UnreachableError; every error of `run` */
  carry<Answer>(request: MemoryRequest, run: () => Answer): Promise<Answer> {
    if (this.#isClosed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      this.#underWay.add(reject);
      void this.#travel(request, run)
        .then(resolve, reject)
        .then(() => this.#underWay.delete(reject));
    });
  }

  /** @throws UnreachableError */
  requireOnline(): void {
    if (this.#isClosed) throw closedError();
    if (this.#isOffline) throw new UnreachableError("the handle of the journal in memory is offline");
  }

  async #travel<Answer>(request: MemoryRequest, run: () => Answer): Promise<Answer> {
    const answer = await (isWrite(request) ? this.#inOrder(request, run) : this.#arrive(request, run));
    const fate = (await this.#faults.onAnswer?.(request)) ?? "deliver";
    if (fate === "lose") throw new UnreachableError("the answer was lost");
    this.requireOnline();
    return answer;
  }

  #inOrder<Answer>(request: MemoryRequest, run: () => Answer): Promise<Answer> {
    const arrival = this.#writes.then(() => this.#arrive(request, run));
    this.#writes = arrival.catch(() => undefined); // thrown to the caller
    return arrival;
  }

  async #arrive<Answer>(request: MemoryRequest, run: () => Answer): Promise<Answer> {
    const fate = (await this.#faults.onRequest?.(request)) ?? "deliver";
    if (fate === "lose") throw new UnreachableError("the request was lost");
    this.requireOnline();
    if (fate === "deliver") return run();
    void fate.until.then(run).catch(() => undefined); // the caller has its answer
    throw new UnreachableError("the request is late");
  }
}

function isWrite({ op }: MemoryRequest): boolean {
  return op === "append" || op === "create" || op === "seal" || op === "remove";
}
