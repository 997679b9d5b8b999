// Timers of a snapshot: each stands in its owner's row, and in the state's heap.

import type { SwarmState, Timer } from "../../state/state.ts";
import { refuse } from "./checked-fields.ts";
import type { TimerWords } from "./values.ts";

export class TimerReader {
  readonly #state: SwarmState;
  readonly #orders = new Set<number>();

  constructor(state: SwarmState) {
    this.#state = state;
  }

  start({ dueAt, order }: TimerWords, due: Timer["due"]): Timer {
    if (order > this.#state.timersEver) refuse(`timer ${order} is none of ${this.#state.timersEver}`);
    if (this.#orders.has(order)) refuse(`there are two timers ${order}`);
    this.#orders.add(order);
    const timer: Timer = { heapAt: -1, dueAt, order, due };
    this.#state.timers.push(timer);
    return timer;
  }
}
