// Timers as they are read: each stands in the row of what it belongs to, and all of them in one heap.

import type { SwarmState, Timer } from "../state.ts";
import { isDueEarlier } from "../state.ts";
import { refuse } from "./checked-fields.ts";
import type { TimerWords } from "./values.ts";

export class TimerReader {
  readonly #state: SwarmState;
  readonly #timers: Timer[] = [];

  constructor(state: SwarmState) {
    this.#state = state;
  }

  start({ dueAt, order }: TimerWords, due: Timer["due"]): Timer {
    if (order > this.#state.timersEver) refuse(`timer ${order} is none of ${this.#state.timersEver}`);
    const timer: Timer = { heapAt: -1, dueAt, order, due };
    this.#timers.push(timer);
    return timer;
  }

  /** Puts all of them into the heap. */
  run(): void {
    this.#timers.sort((a, b) => (isDueEarlier(a, b) ? -1 : 1));
    for (const [at, timer] of this.#timers.entries()) {
      const before = this.#timers[at - 1];
      if (before !== undefined && !isDueEarlier(before, timer)) refuse(`there are two timers ${timer.order}`);
      this.#state.timers.push(timer);
    }
  }
}
