// An RxJS scheduler on the injected clock, so that operators follow virtual time.

import { type SchedulerAction, type SchedulerLike, Subscription } from "rxjs";
import type { Clock } from "./clock.ts";

type TimerClock = Pick<Clock, "after" | "monotonicMs">;
type Work<State> = (this: SchedulerAction<State>, state: State) => void;

export function schedulerOn(clock: TimerClock): SchedulerLike {
  return {
    now: () => clock.monotonicMs(),
    schedule: (work, delayMs, state) => new ClockAction(clock, work).schedule(state, delayMs),
  };
}

class ClockAction<State> extends Subscription implements SchedulerAction<State> {
  readonly #clock: TimerClock;
  readonly #work: Work<State>;
  #cancel: () => void = () => undefined;

  constructor(clock: TimerClock, work: Work<State>) {
    super(() => this.#cancel());
    this.#clock = clock;
    this.#work = work;
  }

  schedule(state?: State, delayMs = 0): Subscription {
    this.#cancel();
    if (!this.closed) this.#cancel = this.#clock.after(delayMs, () => this.#work(state as State));
    return this;
  }
}
