// A clock moved by the test. `soon` is real, so promises and messages proceed.

import type { Clock } from "../../src/clock.ts";

interface ManualTimer {
  readonly dueMs: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 1_000_000;
  readonly #timers = new Set<ManualTimer>();

  now(): number {
    return this.#nowMs;
  }

  /** Time passes while the process stands still: timers are late. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, ms), run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(run: () => void): void {
    setImmediate(run);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Lets `ms` pass: each timer fires at its instant, and all consequences run before the next timer. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settled();
    for (let next = this.#nextUntil(untilMs); next !== undefined; next = this.#nextUntil(untilMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
      await settled();
    }
    this.#nowMs = untilMs;
  }

  #nextUntil(untilMs: number): ManualTimer | undefined {
    let next: ManualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  }
}

/** Resolves when all work that needs no time has run. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
