// Tells followers that the journal has grown. Says how far, not with what: pushes may be lost, may overtake
// each other and end with a term, so order and completeness come from reading the journal alone.
// Listens only while somebody follows.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import { coordinatorBeatSchema, eventPushSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Subscription, Transport } from "../transport/transport.ts";

export interface JournalNewsDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly clock: Clock;
}

export class JournalNews {
  readonly #deps: JournalNewsDeps;
  #followers = 0;
  #subscriptions: readonly Subscription[] = [];
  #lastIdx = 0;
  readonly #waiters = new Set<{ readonly idx: number; readonly wake: () => void }>();

  constructor(deps: JournalNewsDeps) {
    this.#deps = deps;
  }

  /** Begins to listen. Returns a function that stops it. */
  follow(): () => void {
    this.#followers += 1;
    if (this.#followers === 1) this.#listen();
    let isFollowing = true;
    return () => {
      if (!isFollowing) return;
      isFollowing = false;
      this.#followers -= 1;
      if (this.#followers === 0) this.#stop();
    };
  }

  /** The furthest batch heard of. */
  get lastIdx(): number {
    return this.#lastIdx;
  }

  /** What was heard of does not exist: whatever is heard from now on counts. */
  forget(): void {
    this.#lastIdx = 0;
  }

  /** Resolves when a batch beyond `idx` was heard of, or `signal` aborts, or after `limits.journalPollMs`: a
   *  follower that may not hear the news looks for itself. */
  async beyond(idx: number, signal: AbortSignal): Promise<void> {
    if (this.#lastIdx > idx || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        cancel();
        signal.removeEventListener("abort", end);
        this.#waiters.delete(waiter);
        resolve();
      };
      const waiter = { idx, wake: end };
      const cancel = this.#deps.clock.after(limits.journalPollMs, end);
      signal.addEventListener("abort", end, { once: true });
      this.#waiters.add(waiter);
    });
  }

  #listen(): void {
    const { transport, subjects } = this.#deps;
    this.#subscriptions = [
      transport.subscribe(`${subjects.prefix}.event.>`, ({ data }) => {
        const push = decode(data, eventPushSchema);
        if (push.ok) this.#heard(push.value.idx);
      }),
      transport.subscribe(subjects.coordinator, ({ data }) => {
        const beat = decode(data, coordinatorBeatSchema);
        if (beat.ok && beat.value.leading) this.#heard(beat.value.idx);
      }),
    ];
  }

  #stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
    this.#lastIdx = 0;
  }

  #heard(idx: number): void {
    if (idx <= this.#lastIdx) return;
    this.#lastIdx = idx;
    for (const { idx: reached, wake } of [...this.#waiters]) if (idx > reached) wake();
  }
}
