// What a leader says of itself while it cannot answer, for `waggle doctor`: one whose journal is full, or has lost its
// majority, leads and announces it, and nothing it is asked gets an answer.

import type { SwarmId } from "../../ids.ts";
import { decode } from "../../protocol/codec.ts";
import { type CoordinatorHeartbeat, coordinatorHeartbeatSchema } from "../../protocol/schemas.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Subscription, Transport } from "../../transport/transport.ts";
import { wait } from "../wait.ts";

/** Listens from the start, until it is stopped. */
export class LeadHeard {
  readonly #subscription: Subscription;
  readonly #first = new AbortController();
  #newest: CoordinatorHeartbeat | undefined;

  constructor(transport: Transport, swarm: SwarmId) {
    this.#subscription = transport.subscribe(subjectsOf(swarm).coordinator, ({ data }) => {
      const beat = decode(data, coordinatorHeartbeatSchema);
      if (!beat.ok || !beat.value.leading) return;
      if (beat.value.term >= (this.#newest?.term ?? 0)) this.#newest = beat.value;
      this.#first.abort();
    });
  }

  /** The newest announcement of who says that it leads; undefined when nobody says so for `waitMs`. */
  async heard(waitMs: number, signal: AbortSignal): Promise<CoordinatorHeartbeat | undefined> {
    await wait(waitMs, AbortSignal.any([signal, this.#first.signal]));
    signal.throwIfAborted();
    return this.#newest;
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }
}
