// Virtual time: one line of events, each run at its instant and then played to its end, promises included, before
// the next. Nothing in here or above it asks the real clock, so a seed always takes the same course.
//
// How an event is played to its end: Node runs a tick (`process.nextTick`) asked for within a promise only when no
// promise has anything left to run. Waiting for one after each event therefore waits for everything that the event
// set off, at a tenth of what a macrotask costs.
//
// An event belongs to a life (life.ts) or to the world. What belongs to a life that has ended is dropped; what
// belongs to one that is paused or slow waits until it is not.

import { IndexedHeap } from "../../state/indexed-heap.ts";
import { TraceHash } from "./trace-hash.ts";

/** Who an event belongs to, as the engine sees it. */
export interface Owner {
  /** Named in the trace. */
  readonly name: string;
  readonly hasEnded: boolean;
  /** Virtual ms before which nothing of it runs. */
  readonly freeAtMs: number;
  /** It ran something just now. */
  ran(nowMs: number): void;
}

interface Planned {
  atMs: number;
  readonly order: number;
  readonly owner: Owner | undefined;
  /** What kind of event it is, for the trace. */
  readonly label: string;
  readonly run: () => void;
  heapAt: number;
}

/** So many events of one instant are a loop. What a clogged link held arrives in one: a hundred readings of a journal
 *  that were given up are no loop. */
const EVENTS_PER_INSTANT = 1_000_000;
/** Real events (a Ctrl-C, a terminal that draws) get their turn after so many virtual ones. */
const EVENTS_PER_BREATH = 4_096;

export class Engine {
  readonly trace = new TraceHash();
  readonly #queue = new IndexedHeap<Planned>(isEarlier);
  #nowMs = 0;
  #orders = 0;
  #events = 0;
  /** Of the present instant. */
  #eventsNow = 0;

  /** Virtual ms since the beginning, with fractions. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Run so far. */
  get events(): number {
    return this.#events;
  }

  /** Runs something after `ms`, in the name of `owner`. Returns a function that cancels it. */
  after(ms: number, label: string, run: () => void, owner?: Owner): () => void {
    this.#orders += 1;
    const atMs = this.#nowMs + Math.max(0, ms);
    const planned: Planned = { atMs, order: this.#orders, owner, label, run, heapAt: -1 };
    this.#queue.push(planned);
    return () => {
      if (planned.heapAt !== -1) this.#queue.remove(planned);
    };
  }

  /** Plays everything until virtual time reaches `untilMs`, or `isEnough` says so after an event.
   *  @throws what an event threw; the reason of `signal` */
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

  /** @returns whether it ran */
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
