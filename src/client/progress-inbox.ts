// Progress reports of running attempts, for watchers of a task. Not journaled, and some reports may be lost.
// Subscribes only while a task is watched.

import { taskKey } from "../ids.ts";
import { decode } from "../protocol/codec.ts";
import { type ProgressPush, progressPushSchema } from "../protocol/schemas.ts";
import type { Subscription, Transport } from "../transport/transport.ts";

type Listener = (progress: ProgressPush) => void;

export class ProgressInbox {
  readonly #transport: Transport;
  readonly #subject: string;
  readonly #listenersByKey = new Map<string, Set<Listener>>();
  #subscription: Subscription | undefined;

  constructor(transport: Transport, subject: string) {
    this.#transport = transport;
    this.#subject = subject;
  }

  /** Returns a function that stops watching. A leader sends reports only for awaited tasks. */
  watch(task: { readonly project: string; readonly task: string }, listener: Listener): () => void {
    const key = taskKey(task);
    const listeners = this.#listenersByKey.get(key) ?? new Set();
    this.#listenersByKey.set(key, listeners.add(listener));
    this.#subscription ??= this.#transport.subscribe(this.#subject, ({ data }) => {
      const push = decode(data, progressPushSchema);
      if (push.ok)
        for (const notify of this.#listenersByKey.get(taskKey(push.value)) ?? []) notify(push.value);
    });
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listenersByKey.delete(key);
      if (this.#listenersByKey.size === 0) this.close();
    };
  }

  close(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }
}
