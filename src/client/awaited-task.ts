// One task that somebody waits for, and everybody who does. Ends once, with an outcome or with an error that
// is not the task's. Its owner is awaited-tasks.ts.

import type { WaggleError } from "../errors.ts";
import { taskKey } from "../ids.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import type { Outcome } from "../protocol/schemas.ts";

/** How the wait ended. */
export type Awaited =
  | { readonly kind: "ended"; readonly outcome: Outcome }
  | { readonly kind: "failed"; readonly error: WaggleError };

export class AwaitedTask {
  readonly id: string;
  readonly project: string;
  readonly key: string;
  /** A leader was told, or is to be told, that we wait. */
  isWatched = false;
  /** When a leader was last told that we wait, on the monotonic clock, and in which term; 0: not yet. */
  toldAtMs = 0;
  toldTerm = 0;
  /** Where the journal stood when it was accepted, if it was submitted here. */
  acceptedAt: JournalPoint | undefined;
  #awaited: Awaited | undefined;
  #listeners: ((awaited: Awaited) => void)[] = [];

  constructor(id: string, project: string) {
    this.id = id;
    this.project = project;
    this.key = taskKey({ project, task: id });
  }

  get hasEnded(): boolean {
    return this.#awaited !== undefined;
  }

  /** Undefined while it goes on. */
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

  /** Calls `listener` once, when the wait ends, or now. Returns a function that stops it. */
  onEnd(listener: (awaited: Awaited) => void): () => void {
    if (this.#awaited !== undefined) {
      listener(this.#awaited);
      return () => undefined;
    }
    this.#listeners.push(listener);
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    };
  }

  #settle(awaited: Awaited): void {
    if (this.#awaited !== undefined) return;
    this.#awaited = awaited;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener(awaited);
  }
}
