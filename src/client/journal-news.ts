// Tells followers that the journal has grown. Says how far, not with what: pushes may be lost, may overtake
// each other and end with a term, so order and completeness come from reading the journal alone.
// Listens only while somebody follows.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import { coordinatorHeartbeatSchema, eventPushSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Subscription, Transport } from "../transport/transport.ts";

export interface JournalNewsDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly clock: Clock;
}

export class JournalNews {
  readonly #deps: JournalNewsDeps;
  /** Number of followers per project; each entry counts at least one. */
  readonly #followersByProject = new Map<string, { count: number; readonly subscription: Subscription }>();
  #beats: Subscription | undefined;
  #lastIdx = 0;
  readonly #waiters = new Set<{ readonly idx: number; readonly wake: () => void }>();

  constructor(deps: JournalNewsDeps) {
    this.#deps = deps;
  }

  /** Begins to listen for events of a project, or of all (`_`). Returns a function that stops it. */
  follow(project: string): () => void {
    this.#beats ??= this.#listenForBeats();
    const known = this.#followersByProject.get(project);
    const followers = known ?? { count: 0, subscription: this.#listen(project) };
    followers.count += 1;
    this.#followersByProject.set(project, followers);
    let isFollowing = true;
    return () => {
      if (!isFollowing) return;
      isFollowing = false;
      followers.count -= 1;
      if (followers.count === 0) this.#stop(project, followers.subscription);
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

  #listen(project: string): Subscription {
    const { transport, subjects } = this.#deps;
    return transport.subscribe(subjects.eventsOf(project), ({ data }) => {
      const push = decode(data, eventPushSchema);
      if (push.ok) this.#heard(push.value.idx);
    });
  }

  #listenForBeats(): Subscription {
    const { transport, subjects } = this.#deps;
    return transport.subscribe(subjects.coordinator, ({ data }) => {
      const beat = decode(data, coordinatorHeartbeatSchema);
      if (beat.ok && beat.value.leading) this.#heard(beat.value.idx);
    });
  }

  #stop(project: string, subscription: Subscription): void {
    subscription.unsubscribe();
    this.#followersByProject.delete(project);
    if (this.#followersByProject.size > 0) return;
    this.#beats?.unsubscribe();
    this.#beats = undefined;
    this.#lastIdx = 0;
  }

  #heard(idx: number): void {
    if (idx <= this.#lastIdx) return;
    this.#lastIdx = idx;
    for (const { idx: reached, wake } of [...this.#waiters]) if (idx > reached) wake();
  }
}
