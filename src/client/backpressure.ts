// Reports held-back tasks to a submitter: the leader's queue is full. submit-queue.ts decides when to try again.
// Answers arriving together cause a single report.

import type { Clock } from "../clock.ts";
import type { BackpressureError } from "../errors.ts";

/** Tasks without room in the swarm at present. The client submits the tasks again automatically. */
export interface Backpressure {
  /** Number of tasks held back; 0 when all were accepted or refused. */
  readonly tasks: number;
  /** Time of the first refusal by the local clock. */
  readonly since: Date;
  /** Delay before the newest refused tasks are submitted again, ms. */
  readonly retryAfterMs: number;
  /** The leader's reason: the full queue. */
  readonly reason: string;
}

export interface HeldBackDeps {
  readonly clock: Clock;
  readonly report: (backpressure: Backpressure) => void;
}

/** Counts the held-back tasks of a call or a connection. */
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

  /** A held-back task was accepted, refused or given up. */
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
