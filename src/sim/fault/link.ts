// The wire between one process and the server, in both directions. In good weather each message arrives, once, in
// order, soon. Faults (nemesis.ts) change that for as long as they last.

import { limits } from "../../limits.ts";
import type { SeededRandom } from "../random.ts";
import type { Engine, Owner } from "./engine.ts";

export type Direction = "up" | "down";

/** What the weather does to the messages of one direction. */
export interface Condition {
  /** Of messages, in [0, 1]. */
  readonly lossShare: number;
  readonly duplicateShare: number;
  /** Of messages, those that may be overtaken. */
  readonly reorderShare: number;
  /** Of messages, those that take `lateMs` on average, with a heavy tail. */
  readonly lateShare: number;
  readonly lateMs: number;
  /** Nothing arrives before this virtual instant, ms; then all that was sent does, in order. */
  readonly heldUntilMs: number;
}

/** Fastest and slowest way of a message in good weather, ms. */
const FASTEST_MS = 0.1;
const SLOWEST_MS = 0.8;
/** The longest a late message takes, in means: beyond it the tail only makes seeds longer. */
const TAIL_MAX = 40;
/** …and than this, ms: a connection that is silent for longer is given up for another, by the client's pings. */
const LATE_MS_MAX = limits.clientPingMs * (limits.clientPingsMax + 1);
/** A second copy comes so much later at most, ms; most come soon. */
const COPY_MS = 120_000;

export class Link {
  readonly name: string;
  readonly #engine: Engine;
  readonly #random: SeededRandom;
  readonly #condition: { up: Condition | undefined; down: Condition | undefined } = {
    up: undefined,
    down: undefined,
  };
  /** When the last message that kept its order arrives. */
  readonly #arrivedMs = { up: 0, down: 0 };
  #lastArrivalMs = 0;
  /** No connection can be made over it. */
  isDown = false;
  /** Nothing passes to or from who is on another side; but the journal has its own ways. */
  side = "";
  /** What coordinators tell each other does not pass. */
  isAlone = false;

  constructor(name: string, engine: Engine, random: SeededRandom) {
    this.name = name;
    this.#engine = engine;
    this.#random = random;
  }

  /** When the last of what was sent over it so far arrives, virtual ms. */
  get lastArrivalMs(): number {
    return this.#lastArrivalMs;
  }

  /** Whether something that was sent over it is late, and all behind that. */
  get isLate(): boolean {
    return Math.max(this.#arrivedMs.up, this.#arrivedMs.down) > this.#engine.nowMs + SLOWEST_MS;
  }

  /** A new connection is made over it, which does not wait for what the one before carries. */
  renew(): void {
    this.#arrivedMs.up = this.#engine.nowMs;
    this.#arrivedMs.down = this.#engine.nowMs;
  }

  set(direction: Direction, condition: Condition | undefined): void {
    this.#condition[direction] = condition;
  }

  /** Carries a message: `arrive` is called for each copy that arrives, in the name of `owner`. */
  carry(direction: Direction, arrive: () => void, owner?: Owner): void {
    const condition = this.#condition[direction];
    if (condition === undefined)
      return this.#arrive(direction, this.#inOrder(direction, this.#quickMs()), arrive, owner);
    if (this.#random.chance(condition.lossShare)) return;
    this.#arrive(direction, this.#delayMs(direction, condition), arrive, owner);
    if (!this.#random.chance(condition.duplicateShare)) return;
    this.#arrive(direction, this.#delayMs(direction, condition) + this.#copyMs(), arrive, owner);
  }

  /** Carries what the connection itself cannot lose while it lasts (subscriptions, pings): late at worst. */
  carrySurely(direction: Direction, arrive: () => void, owner?: Owner): void {
    const heldMs = (this.#condition[direction]?.heldUntilMs ?? 0) - this.#engine.nowMs;
    this.#arrive(direction, this.#inOrder(direction, Math.max(heldMs, this.#quickMs())), arrive, owner);
  }

  #delayMs(direction: Direction, condition: Condition): number {
    const isLate = this.#random.chance(condition.lateShare);
    const waitMs = isLate ? this.#lateMs(condition.lateMs) : this.#quickMs();
    const ms = Math.max(waitMs, condition.heldUntilMs - this.#engine.nowMs);
    return this.#random.chance(condition.reorderShare) ? ms + this.#quickMs() : this.#inOrder(direction, ms);
  }

  #inOrder(direction: Direction, ms: number): number {
    const arrivedMs = Math.max(this.#arrivedMs[direction], this.#engine.nowMs + ms);
    this.#arrivedMs[direction] = arrivedMs;
    return arrivedMs - this.#engine.nowMs;
  }

  #copyMs(): number {
    const near = this.#random.fraction() * this.#random.fraction() * this.#random.fraction();
    return COPY_MS * near * near;
  }

  #quickMs(): number {
    return FASTEST_MS + (SLOWEST_MS - FASTEST_MS) * this.#random.fraction();
  }

  /** By Pareto with exponent 2: a mean, and no variance. A root is the same to the bit on every engine, a power is
   *  not. */
  #lateMs(meanMs: number): number {
    const lateMs = meanMs / 2 / Math.sqrt(1 - this.#random.fraction());
    return Math.min(lateMs, meanMs * TAIL_MAX, LATE_MS_MAX);
  }

  #arrive(direction: Direction, ms: number, arrive: () => void, owner: Owner | undefined): void {
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#engine.nowMs + ms);
    this.#engine.after(ms, direction, arrive, owner);
  }
}
