// Pushes of a leader about running tasks: reports of progress, or chunks of results. Not journaled, and some may be
// lost. Subscribes only while a task is watched.

import type { z } from "zod";
import { taskKey } from "../ids.ts";
import { decode } from "../protocol/codec.ts";
import type { Subscription, Transport } from "../transport/transport.ts";

interface NamedTask {
  readonly project: string;
  readonly task: string;
}

type Listener<Push> = (push: Push) => void;

export class TaskInbox<Push extends NamedTask> {
  readonly #transport: Transport;
  readonly #subject: string;
  readonly #schema: z.ZodType<Push>;
  readonly #listenersByKey = new Map<string, Set<Listener<Push>>>();
  #subscription: Subscription | undefined;

  constructor(transport: Transport, subject: string, schema: z.ZodType<Push>) {
    this.#transport = transport;
    this.#subject = subject;
    this.#schema = schema;
  }

  /** Returns a function that stops watching. A leader sends pushes only for awaited tasks. */
  watch(task: NamedTask, listener: Listener<Push>): () => void {
    const key = taskKey(task);
    const listeners = this.#listenersByKey.get(key) ?? new Set();
    this.#listenersByKey.set(key, listeners.add(listener));
    this.#subscription ??= this.#transport.subscribe(this.#subject, ({ data }) => {
      const push = decode(data, this.#schema);
      if (push.ok)
        for (const notify of this.#listenersByKey.get(taskKey(push.value)) ?? []) notify(push.value);
    });
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listenersByKey.get(key) === listeners)
        this.#listenersByKey.delete(key);
      if (this.#listenersByKey.size === 0) this.close();
    };
  }

  close(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }
}
