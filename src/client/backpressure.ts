// Tells a submitter that its tasks are held back: the leader has no room for them, and they are tried again.
// Not here: when a task is tried again (submit-queue.ts). One report for all answers that arrive together.

import type { Clock } from "../clock.ts";
import type { BackpressureError } from "../errors.ts";

/** The tasks for which the swarm has no room at present. They are submitted again by themselves. */
export interface Backpressure {
  /** Tasks that are held back now; 0 once all of them were accepted or refused. */
  readonly tasks: number;
  /** When the first of them was turned away, by this machine's clock. */
  readonly since: Date;
  /** The time after which the newest of them are submitted again, ms. */
  readonly retryAfterMs: number;
  /** The leader's reason: which queue is full. */
  readonly reason: string;
}

export interface HeldBackDeps {
  readonly clock: Clock;
  readonly report: (backpressure: Backpressure) => void;
}

/** Counts the tasks of one call, or of one connection, that are held back. */
export class HeldBack {
  readonly #deps: HeldBackDeps;
  #tasks = 0;
  #since = new Date(0);
  #refusal: BackpressureError | undefined;
  #isReported = false;
  #isScheduled = false;

  constructor(deps: HeldBackDeps) {
    this.#deps = deps;
  }

  /** @param isNew the task was not held back before */
  turnedAway(refusal: BackpressureError, isNew: boolean): void {
    if (this.#tasks === 0) this.#since = new Date(this.#deps.clock.now());
    if (isNew) this.#tasks += 1;
    this.#refusal = refusal;
    this.#schedule();
  }

  /** A task that was held back is accepted, refused or given up. */
  letGo(): void {
    this.#tasks -= 1;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#deps.clock.soon(() => {
      this.#isScheduled = false;
      this.#report();
    });
  }

  #report(): void {
    if (this.#refusal === undefined || (this.#tasks === 0 && !this.#isReported)) return;
    this.#isReported = this.#tasks > 0;
    const { retryAfterMs, message: reason } = this.#refusal;
    this.#deps.report({ tasks: this.#tasks, since: this.#since, retryAfterMs, reason });
  }
}
