// Virtual time: a queue of events in one order. Each event runs at its instant and is played to its end, promises
// included, before the next. No code of the simulation reads the real clock, so a seed always takes the same course.
//
// How an event is played to its end: Node runs a tick (`process.nextTick`) requested within a promise only when no
// promise has work left. So a tick after each event waits for all work that the event started, at a tenth of the cost
// of a macrotask.
//
// An event belongs to a session or to the world. Events of an ended session are dropped; events of a paused
// or slow session wait.

import { IndexedHeap } from "../../state/indexed-heap.ts";
import { TraceHash } from "./trace-hash.ts";

/** The owner of an event, as the engine sees it. */
export interface Owner {
  /** Name in the trace. */
  readonly name: string;
  readonly hasEnded: boolean;
  /** Virtual ms before which no event of the owner runs. */
  readonly freeAtMs: number;
  /** Called when an event of the owner runs. */
  ran(nowMs: number): void;
}

interface Planned {
  atMs: number;
  readonly order: number;
  readonly owner: Owner | undefined;
  /** Kind of the event, for the trace. */
  readonly label: string;
  readonly run: () => void;
  heapAt: number;
}

/**
 * More events than this in one instant are a loop. A clogged link frees its messages in one instant: a hundred
 * abandoned readings of a journal are no loop.
 */
const EVENTS_PER_INSTANT = 1_000_000;
/** Virtual events between turns of real events (a Ctrl-C, a terminal that draws). */
const EVENTS_PER_BREATH = 4_096;

export class Engine {
  readonly trace = new TraceHash();
  readonly #queue = new IndexedHeap<Planned>(isEarlier);
  #nowMs = 0;
  #orders = 0;
  #events = 0;
  /** Events in the current instant. */
  #eventsNow = 0;

  /** Virtual ms since the beginning, with fractions. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events run so far. */
  get events(): number {
    return this.#events;
  }

  /** Runs a function after `ms`, on behalf of `owner`. Returns a function to cancel. */
  after(ms: number, label: string, run: () => void, owner?: Owner): () => void {
    this.#orders += 1;
    const atMs = this.#nowMs + Math.max(0, ms);
    const planned: Planned = { atMs, order: this.#orders, owner, label, run, heapAt: -1 };
    this.#queue.push(planned);
    return () => {
      if (planned.heapAt !== -1) this.#queue.remove(planned);
    };
  }

  /**
   * Plays events until virtual time reaches `untilMs`, or `isEnough` returns true after an event.
   * @throws an error thrown by an event; the reason of `signal`
   */
  async run(untilMs: number, isEnough: () => boolean, signal?: AbortSignal): Promise<void> {
    for (let next = this.#queue.peek(); next !== undefined; next = this.#queue.peek()) {
      if (next.atMs > untilMs) break;
      this.#queue.remove(next);
      this.#setNow(next.atMs);
      if (!this.#play(next)) continue;
      await everythingPlayed();
      this.#events += 1;
      if (isEnough()) return;
      if (this.#events % EVENTS_PER_BREATH !== 0) continue;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  #setNow(ms: number): void {
    this.#eventsNow = ms === this.#nowMs ? this.#eventsNow + 1 : 0;
    this.#nowMs = ms;
    if (this.#eventsNow > EVENTS_PER_INSTANT) throw new Error(`time stands still at ${ms} ms`);
  }

  /** @returns whether the event ran */
  #play(planned: Planned): boolean {
    const { owner } = planned;
    if (owner?.hasEnded === true) return false;
    if (owner !== undefined && owner.freeAtMs > this.#nowMs) {
      planned.atMs = owner.freeAtMs;
      this.#queue.push(planned);
      return false;
    }
    this.trace.add(this.#nowMs);
    this.trace.addText(planned.label);
    if (owner !== undefined) this.trace.addText(owner.name);
    owner?.ran(this.#nowMs);
    planned.run();
    return true;
  }
}

function isEarlier(a: Planned, b: Planned): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.order < b.order;
}

function everythingPlayed(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
