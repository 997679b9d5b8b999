// One awaited task, and all its listeners. The wait ends once: with an outcome, or with an error of the wait
// itself. Owned by awaited-tasks.ts.

import type { WaggleError } from "../errors.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import type { Outcome } from "../protocol/schemas.ts";

/** Result of the wait. */
export type Awaited =
  | { readonly kind: "ended"; readonly outcome: Outcome }
  | { readonly kind: "failed"; readonly error: WaggleError };

type Listener = (awaited: Awaited) => void;

const NONE: readonly Listener[] = [];

export class AwaitedTask {
  readonly id: string;
  readonly project: string;
  /** This connection wants the leader to push the outcome. */
  isWatched = false;
  /** Time of the last request to a leader, on the monotonic clock, and the term of its answer; term 0: no
   *  answer yet. */
  askedAtMs = 0;
  askedTerm = 0;
  /** Position of the journal at acceptance, if submitted over this connection. */
  acceptedAt: JournalPoint | undefined;
  #awaited: Awaited | undefined;
  /** Replaced at each change: most tasks have a single listener, or none. */
  #listeners: readonly Listener[] = NONE;

  constructor(id: string, project: string) {
    this.id = id;
    this.project = project;
  }

  get hasEnded(): boolean {
    return this.#awaited !== undefined;
  }

  /** Undefined while the wait goes on. */
  get awaited(): Awaited | undefined {
    return this.#awaited;
  }

  get hasListeners(): boolean {
    return this.#listeners.length > 0;
  }

  end(outcome: Outcome): void {
    this.#settle({ kind: "ended", outcome });
  }

  fail(error: WaggleError): void {
    this.#settle({ kind: "failed", error });
  }

  /** Calls `listener` once when the wait ends, or now. Returns a function that removes the listener. */
  onEnd(listener: Listener): () => void {
    if (this.#awaited !== undefined) {
      listener(this.#awaited);
      return () => undefined;
    }
    this.listen(listener);
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    };
  }

  /** Calls `listener` once when the wait ends. The wait must not have ended. */
  listen(listener: Listener): void {
    this.#listeners = this.#listeners === NONE ? [listener] : [...this.#listeners, listener];
  }

  #settle(awaited: Awaited): void {
    if (this.#awaited !== undefined) return;
    this.#awaited = awaited;
    const listeners = this.#listeners;
    this.#listeners = NONE;
    for (const listener of listeners) listener(awaited);
  }
}
