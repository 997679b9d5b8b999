// The wire between a process and the server, in both directions. Without faults each message arrives once, in order and
// soon. Faults (nemesis.ts) change the wire while they last.

import { limits } from "../../limits.ts";
import type { SeededRandom } from "../random.ts";
import type { Engine, Owner } from "./engine.ts";

export type Direction = "up" | "down";

/** The active faults in one direction of the wire. */
export interface Condition {
  /** Share of lost messages, in [0, 1]. */
  readonly lossShare: number;
  readonly duplicateShare: number;
  /** Share of messages that others may overtake. */
  readonly reorderShare: number;
  /** Share of late messages: they take `lateMs` on average, with a heavy tail. */
  readonly lateShare: number;
  readonly lateMs: number;
  /** No message arrives before the instant, virtual ms; then all held messages arrive in order. */
  readonly heldUntilMs: number;
}

/** Fastest and slowest delivery without faults, ms. */
const FASTEST_MS = 0.1;
const SLOWEST_MS = 0.8;
/** Longest delivery of a late message, in means: a longer tail only makes seeds longer. */
const TAIL_MAX = 40;
/** …and in ms: after a longer silence the client's pings would replace the connection. */
const LATE_MS_MAX = limits.clientPingMs * (limits.clientPingsMax + 1);
/** Longest delay of a second copy, ms; most copies come soon. */
const COPY_MS = 120_000;

export class Link {
  readonly name: string;
  readonly #engine: Engine;
  readonly #random: SeededRandom;
  readonly #condition: { up: Condition | undefined; down: Condition | undefined } = {
    up: undefined,
    down: undefined,
  };
  /** Arrival of the last message in order, per direction. */
  readonly #arrivedMs = { up: 0, down: 0 };
  #lastArrivalMs = 0;
  /** True while no connection can be made. */
  isDown = false;
  /** Messages pass only between equal sides. The journal has links of its own. */
  side = "";
  /** True while messages between coordinators are lost. */
  isAlone = false;

  constructor(name: string, engine: Engine, random: SeededRandom) {
    this.name = name;
    this.#engine = engine;
    this.#random = random;
  }

  /** Arrival of the last message sent so far, virtual ms. */
  get lastArrivalMs(): number {
    return this.#lastArrivalMs;
  }

  /** Whether a message is late and holds back all later messages. */
  get isLate(): boolean {
    return Math.max(this.#arrivedMs.up, this.#arrivedMs.down) > this.#engine.nowMs + SLOWEST_MS;
  }

  /** A new connection, without the order of messages on the previous connection. */
  renew(): void {
    this.#arrivedMs.up = this.#engine.nowMs;
    this.#arrivedMs.down = this.#engine.nowMs;
  }

  set(direction: Direction, condition: Condition | undefined): void {
    this.#condition[direction] = condition;
  }

  /** Carries a message: calls `arrive` for each copy that arrives, on behalf of `owner`. */
  carry(direction: Direction, arrive: () => void, owner?: Owner): void {
    const condition = this.#condition[direction];
    if (condition === undefined)
      return this.#arrive(direction, this.#inOrder(direction, this.#quickMs()), arrive, owner);
    if (this.#random.chance(condition.lossShare)) return;
    this.#arrive(direction, this.#delayMs(direction, condition), arrive, owner);
    if (!this.#random.chance(condition.duplicateShare)) return;
    this.#arrive(direction, this.#delayMs(direction, condition) + this.#copyMs(), arrive, owner);
  }

  /** Carries a message of the connection itself (subscriptions, pings): never lost, late at worst. */
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

  /**
   * Pareto with exponent 2: finite mean, infinite variance. A root has the same bits on every engine, a power has not.
   */
  #lateMs(meanMs: number): number {
    const lateMs = meanMs / 2 / Math.sqrt(1 - this.#random.fraction());
    return Math.min(lateMs, meanMs * TAIL_MAX, LATE_MS_MAX);
  }

  #arrive(direction: Direction, ms: number, arrive: () => void, owner: Owner | undefined): void {
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#engine.nowMs + ms);
    this.#engine.after(ms, direction, arrive, owner);
  }
}
