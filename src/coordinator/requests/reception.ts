// Where a leader takes requests: listens on the subjects that only a leader serves, from its first moment until its
// term ends. Not here: what becomes of a request (requests.ts, request-desk.ts).

import type { Random } from "../../clock.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { Subscription, Transport } from "../../transport/transport.ts";
import type { RequestTarget } from "./request-target.ts";
import { Requests } from "./requests.ts";

export interface ReceptionDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly random: Random;
}

export class Reception {
  readonly #deps: ReceptionDeps;
  readonly #requests: Requests;
  #subscriptions: Subscription[] = [];

  constructor(deps: ReceptionDeps, target: RequestTarget) {
    this.#deps = deps;
    this.#requests = new Requests(deps.subjects, deps.random, target);
  }

  open(): void {
    const { transport, subjects } = this.#deps;
    this.#subscriptions = subjects.leaderPatterns.map((pattern) =>
      transport.subscribe(pattern, (message) => this.#requests.take(message)),
    );
  }

  /** Idempotent. */
  close(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }
}
