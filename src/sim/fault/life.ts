// One life of a simulated process: its clock, its chance, and what may be done to it. Whatever the process waits for
// comes to it as an event of its life, so that once it has ended nothing of it ever runs again, as after a kill.

import type { Clock, Random } from "../../clock.ts";
import type { Incarnation } from "../../ids.ts";
import type { SeededRandom } from "../random.ts";
import type { Engine, Owner } from "./engine.ts";

/** The clocks of one machine: they outlive its processes, and faults set them. */
export interface MachineClock {
  /** Added to the true wall clock, ms. */
  wallSkewMs: number;
  /** Of the monotonic clock, per true ms; near 1. Set at virtual 0 or never: it may not jump. */
  rate: number;
}

/** How far a monotonic clock may drift from true time, either way: a share. */
export const DRIFT = 0.01;
/** What a timer lasts at most by a slow clock, per ms that it was set for, rounded up. */
export const SLOW_MAX = 1 + 2 * DRIFT;
/** A fast clock's share of true time, at least, rounded down. */
export const FAST_SHARE = 1 - 2 * DRIFT;

/** Its clocks are right. */
export function newMachine(): MachineClock {
  return { wallSkewMs: 0, rate: 1 };
}

/** What the wall clock shows at virtual 0: a day in 2027. */
export const WALL_START_MS = 1_800_000_000_000;

/** No timer of Node's is shorter. */
const TIMER_MS_MIN = 1;
const ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export class Life implements Owner {
  readonly name: string;
  /** When it began, virtual ms. */
  readonly bornMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** As which life of an agent it last asked to join, if it did. */
  incarnation: Incarnation | undefined;
  readonly #engine: Engine;
  #hasEnded = false;
  #freeAtMs = 0;
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #slowMs = 0;
  readonly #onEnd: (() => void)[] = [];

  /** @param random of this life alone */
  constructor(name: string, engine: Engine, machine: MachineClock, random: SeededRandom) {
    this.name = name;
    this.bornMs = engine.nowMs;
    this.#engine = engine;
    this.clock = new LifeClock(this, engine, machine);
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

  /** Until when it was last paused or slow, virtual ms. */
  get heldUntilMs(): number {
    return this.#heldUntilMs;
  }

  ran(nowMs: number): void {
    if (this.#slowMs === 0) return;
    this.#freeAtMs = nowMs + this.#slowMs;
    this.#heldUntilMs = this.#freeAtMs;
  }

  /** Runs something of this life, unless it ends before. Returns a function that cancels it. */
  after(ms: number, label: string, run: () => void): () => void {
    return this.#engine.after(ms, label, run, this);
  }

  /** Calls `run` when the life ends. */
  onEnd(run: () => void): void {
    this.#onEnd.push(run);
  }

  /** Stops it where it stands. */
  kill(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const run of this.#onEnd.splice(0)) run();
  }

  /** Nothing of it runs for so long; what comes meanwhile waits. */
  pause(ms: number): void {
    this.#freeAtMs = Math.max(this.#freeAtMs, this.#engine.nowMs + ms);
    this.#heldUntilMs = this.#freeAtMs;
  }

  /** From now on each of its events takes so long; 0: no time. */
  setSlow(ms: number): void {
    this.#slowMs = ms;
  }
}

class LifeClock implements Clock {
  readonly #life: Life;
  readonly #engine: Engine;
  readonly #machine: MachineClock;

  constructor(life: Life, engine: Engine, machine: MachineClock) {
    this.#life = life;
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
    return this.#life.after(Math.max(TIMER_MS_MIN, ms) / this.#machine.rate, "timer", run);
  }

  soon(run: () => void): void {
    this.#life.after(0, "soon", run);
  }
}
