// A session of a simulated process: its clock, its randomness and its faults. All inputs of the process arrive as
// events of the session, so nothing runs after its end, as after a kill.

import type { Clock, Random } from "../../clock.ts";
import type { Incarnation } from "../../ids.ts";
import type { SeededRandom } from "../random.ts";
import type { Engine, Owner } from "./engine.ts";

/** The clocks of a machine: they outlive processes, and faults set them. */
export interface MachineClock {
  /** Added to the true wall clock, ms. */
  wallSkewMs: number;
  /** Rate of the monotonic clock per true ms, near 1. Set only at virtual 0: the clock may not jump. */
  rate: number;
}

/** Largest drift of a monotonic clock from true time, in either direction: a share. */
export const DRIFT = 0.01;
/** Longest duration of a timer by a slow clock, per ms set, rounded up. */
export const SLOW_MAX = 1 + 2 * DRIFT;
/** Smallest share of true time counted by a timer on a fast clock, rounded down. */
export const FAST_SHARE = 1 - 2 * DRIFT;

/** A machine with correct clocks. */
export function newMachine(): MachineClock {
  return { wallSkewMs: 0, rate: 1 };
}

/** The wall clock at virtual 0: a day in 2027. */
export const WALL_START_MS = 1_800_000_000_000;

/** Shortest timer of Node. */
const TIMER_MS_MIN = 1;
const ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export class Session implements Owner {
  readonly name: string;
  /** Begin of the session, virtual ms. */
  readonly bornMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Incarnation of the session's last join request, if any. */
  incarnation: Incarnation | undefined;
  readonly #engine: Engine;
  #hasEnded = false;
  #freeAtMs = 0;
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #slowMs = 0;
  readonly #onEnd: (() => void)[] = [];

  /** @param random used by the session alone */
  constructor(name: string, engine: Engine, machine: MachineClock, random: SeededRandom) {
    this.name = name;
    this.bornMs = engine.nowMs;
    this.#engine = engine;
    this.clock = new SessionClock(this, engine, machine);
    this.random = {
      next: () => random.fraction(),
      id: (length) => Array.from({ length }, () => ID_ALPHABET[random.below(ID_ALPHABET.length)]).join(""),
    };
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get freeAtMs(): number {
    return this.#freeAtMs;
  }

  /** End of the last pause or slow event, virtual ms. */
  get heldUntilMs(): number {
    return this.#heldUntilMs;
  }

  ran(nowMs: number): void {
    if (this.#slowMs === 0) return;
    this.#freeAtMs = nowMs + this.#slowMs;
    this.#heldUntilMs = this.#freeAtMs;
  }

  /** Runs a function unless the session ends before. Returns a function to cancel. */
  after(ms: number, label: string, run: () => void): () => void {
    return this.#engine.after(ms, label, run, this);
  }

  /** Calls `run` at the end of the session. */
  onEnd(run: () => void): void {
    this.#onEnd.push(run);
  }

  /** Ends the session at once. */
  kill(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const run of this.#onEnd.splice(0)) run();
  }

  /** Pauses the session for `ms`; events wait meanwhile. */
  pause(ms: number): void {
    this.#freeAtMs = Math.max(this.#freeAtMs, this.#engine.nowMs + ms);
    this.#heldUntilMs = this.#freeAtMs;
  }

  /** From now on each event of the session takes `ms`; 0: no time. */
  setSlow(ms: number): void {
    this.#slowMs = ms;
  }
}

class SessionClock implements Clock {
  readonly #session: Session;
  readonly #engine: Engine;
  readonly #machine: MachineClock;

  constructor(session: Session, engine: Engine, machine: MachineClock) {
    this.#session = session;
    this.#engine = engine;
    this.#machine = machine;
  }

  now(): number {
    return WALL_START_MS + Math.floor(this.#engine.nowMs) + this.#machine.wallSkewMs;
  }

  monotonicMs(): number {
    return this.#engine.nowMs * this.#machine.rate;
  }

  after(ms: number, run: () => void): () => void {
    return this.#session.after(Math.max(TIMER_MS_MIN, ms) / this.#machine.rate, "timer", run);
  }

  soon(run: () => void): void {
    this.#session.after(0, "soon", run);
  }
}
