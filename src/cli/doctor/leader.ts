// Announcements of a leader that cannot answer, for `waggle doctor`. A leader with a full journal, or without a
// majority, still leads and sends heartbeats, but answers no request.

import type { SwarmId } from "../../ids.ts";
import { decode } from "../../protocol/codec.ts";
import { type CoordinatorHeartbeat, coordinatorHeartbeatSchema } from "../../protocol/schemas.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Subscription, Transport } from "../../transport/transport.ts";
import { wait } from "../wait.ts";

/** Listens from construction until `stop`. */
export class LeadHeard {
  readonly #subscription: Subscription;
  readonly #first = new AbortController();
  #newest: CoordinatorHeartbeat | undefined;

  constructor(transport: Transport, swarm: SwarmId) {
    this.#subscription = transport.subscribe(subjectsOf(swarm).coordinator, ({ data }) => {
      const heartbeat = decode(data, coordinatorHeartbeatSchema);
      if (!heartbeat.ok || !heartbeat.value.leading) return;
      if (heartbeat.value.term >= (this.#newest?.term ?? 0)) this.#newest = heartbeat.value;
      this.#first.abort();
    });
  }

  /** The newest heartbeat of a coordinator that leads; undefined without a heartbeat for `waitMs`. */
  async heard(waitMs: number, signal: AbortSignal): Promise<CoordinatorHeartbeat | undefined> {
    await wait(waitMs, AbortSignal.any([signal, this.#first.signal]));
    signal.throwIfAborted();
    return this.#newest;
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }
}
