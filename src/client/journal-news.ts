// Notifies followers that the journal has grown: only how far, without content. Pushes may be lost or
// reordered, and end with a term, so order and completeness come from reading the journal. Subscribes only
// while a follower exists.

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
  /** Number of followers per project; at least 1 in each entry. */
  readonly #followersByProject = new Map<string, { count: number; readonly subscription: Subscription }>();
  #heartbeats: Subscription | undefined;
  #lastIdx = 0;
  readonly #waiters = new Set<{ readonly idx: number; readonly wake: () => void }>();

  constructor(deps: JournalNewsDeps) {
    this.#deps = deps;
  }

  /** Subscribes to events of a project, or of all projects (`_`). Returns a function that unsubscribes. */
  follow(project: string): () => void {
    this.#heartbeats ??= this.#listenForHeartbeats();
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

  /** The highest announced batch index. */
  get lastIdx(): number {
    return this.#lastIdx;
  }

  /** Forgets the announced index, which proved wrong. */
  forget(): void {
    this.#lastIdx = 0;
  }

  /** Resolves when a batch beyond `idx` is announced, when `signal` aborts, or after `limits.journalPollMs`.
   *  The timeout serves followers without permission to hear the news. */
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

  #listenForHeartbeats(): Subscription {
    const { transport, subjects } = this.#deps;
    return transport.subscribe(subjects.coordinator, ({ data }) => {
      const heartbeat = decode(data, coordinatorHeartbeatSchema);
      if (heartbeat.ok && heartbeat.value.leading) this.#heard(heartbeat.value.idx);
    });
  }

  #stop(project: string, subscription: Subscription): void {
    subscription.unsubscribe();
    this.#followersByProject.delete(project);
    if (this.#followersByProject.size > 0) return;
    this.#heartbeats?.unsubscribe();
    this.#heartbeats = undefined;
    this.#lastIdx = 0;
  }

  #heard(idx: number): void {
    if (idx <= this.#lastIdx) return;
    this.#lastIdx = idx;
    for (const { idx: reached, wake } of [...this.#waiters]) if (idx > reached) wake();
  }
}
