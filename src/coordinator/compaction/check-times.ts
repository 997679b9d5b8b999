// When a leader asks whether the snapshots can be read (compactor.ts): an hour after it was last looked, whoever led
// then; when its server was away; and when somebody says that one cannot be read, less and less often where all can be.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";
import { RetryPause } from "./retry-pause.ts";

export class CheckTimes {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #retry: RetryPause;
  readonly #wanted: RetryPause;
  #dueMonotonicMs: number;
  #isWanted = false;

  /** @param foundMonotonicMs when it was last looked */
  constructor(clock: Pick<Clock, "monotonicMs">, foundMonotonicMs: number) {
    this.#clock = clock;
    this.#retry = new RetryPause(clock);
    this.#wanted = new RetryPause(clock);
    this.#dueMonotonicMs = Math.max(
      foundMonotonicMs + limits.snapshotCheckMs,
      clock.monotonicMs() + limits.snapshotRetryMs, // a term's first seconds are for its agents
    );
  }

  get isDue(): boolean {
    return this.#retry.isOver && this.#clock.monotonicMs() >= this.#dueMonotonicMs;
  }

  /** Whether it may be asked because somebody wants it, where nothing else is due. */
  get isWanted(): boolean {
    return this.#isWanted && this.#retry.isOver && this.#wanted.isOver;
  }

  /** Due at the next look, unless the last one has just failed. */
  soon(): void {
    this.#dueMonotonicMs = this.#clock.monotonicMs();
  }

  /** Somebody wants it. */
  want(): void {
    this.#isWanted = true;
  }

  /** …and it was asked. @param isInVain all can be read */
  answered({ isInVain }: { readonly isInVain: boolean }): void {
    this.#retry.reset();
    this.#dueMonotonicMs = this.#clock.monotonicMs() + limits.snapshotCheckMs;
    if (!this.#isWanted || !isInVain) this.#wanted.reset();
    this.#wanted.begin();
    this.#isWanted = false;
  }

  /** …and could not be. */
  failed(): void {
    this.soon();
    this.#retry.begin();
    this.#isWanted = false;
  }
}
