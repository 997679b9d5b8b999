// Time that passes when a test says so. Timers run in the order in which they are due, and between two of them
// whatever they set off is played to its end: macrotasks (`soon`) and promises run by themselves.

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

  /** Time passes; resolves when all that it set off has been played. */
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

  /** Time passes in which the process does nothing: timers are late. */
  stall(ms: number): void {
    this.#elapsedMs += ms;
  }

  /** The wall clock is set to another time. */
  jumpWall(ms: number): void {
    this.#wallSkewMs += ms;
  }

  /** Plays what is under way without any time passing. */
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
