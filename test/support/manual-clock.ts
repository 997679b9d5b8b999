// A clock that a test moves. Timers run in the order of their times. Between two timers, all follow-up work (`soon`
// macrotasks, promises) runs to its end.

import type { Clock } from "../../src/clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  /** Wall clock at the start. */
  static readonly startMs = 1_800_000_000_000;
  #elapsedMs = 0;
  #wallSkewMs = 0;
  #soon = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return ManualClock.startMs + this.#elapsedMs + this.#wallSkewMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, ms), run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(run: () => void): void {
    this.#soon += 1;
    setImmediate(() => {
      this.#soon -= 1;
      run();
    });
  }

  /** Moves the clock; resolves when all follow-up work has run. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await this.settle();
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      this.#timers.delete(timer);
      this.#elapsedMs = Math.max(this.#elapsedMs, timer.dueMs);
      timer.run();
      await this.settle();
    }
    this.#elapsedMs = untilMs;
  }

  /** Time passes while the process does nothing: timers are late. */
  stall(ms: number): void {
    this.#elapsedMs += ms;
  }

  /** Sets the wall clock. */
  jumpWall(ms: number): void {
    this.#wallSkewMs += ms;
  }

  /** Runs pending work without moving the clock. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.#soon === 0 ? quiet + 1 : 0)
      await new Promise((resolve) => setImmediate(resolve));
  }

  #next(untilMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (timer.dueMs <= untilMs && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
    return first;
  }
}
