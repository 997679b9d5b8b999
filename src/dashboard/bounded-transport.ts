// A connection bounded to the subjects that a role may publish, whatever its login may do: the rest is refused here,
// and the server never sees it. The dashboard reads over one with an auditor's subjects, also where the server knows no
// users.

import { ForbiddenError } from "../errors.ts";
import {
  type ConnectionStatus,
  type Forbidden,
  type Message,
  type RequestOptions,
  type RequestOutcome,
  type SubscribeOptions,
  type Subscription,
  subjectMatches,
  type Transport,
} from "../transport/transport.ts";

export class BoundedTransport implements Transport {
  readonly #inner: Transport;
  readonly #permitted: readonly string[];

  /** @param permitted subjects to publish to, with NATS wildcards */
  constructor(inner: Transport, permitted: readonly string[]) {
    this.#inner = inner;
    this.#permitted = permitted;
  }

  get inboxPrefix(): string {
    return this.#inner.inboxPrefix;
  }

  get maxPayloadBytes(): number {
    return this.#inner.maxPayloadBytes;
  }

  get closedBy(): Transport["closedBy"] {
    return this.#inner.closedBy;
  }

  /** @throws ForbiddenError, and as the inner transport */
  publish(subject: string, data: Uint8Array, reply?: string): void {
    if (!this.#permits(subject))
      throw new ForbiddenError(`this connection may not publish to ${subject}: nothing was sent`);
    this.#inner.publish(subject, data, reply);
  }

  async request(
    subject: string,
    data: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome | Forbidden> {
    if (!this.#permits(subject)) return { kind: "forbidden", operation: "publish", subject };
    return await this.#inner.request(subject, data, options);
  }

  subscribe(subject: string, handler: (message: Message) => void, options?: SubscribeOptions): Subscription {
    return this.#inner.subscribe(subject, handler, options);
  }

  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    return this.#inner.onStatus(listener);
  }

  status(): ConnectionStatus {
    return this.#inner.status();
  }

  async flush(): Promise<void> {
    await this.#inner.flush();
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }

  #permits(subject: string): boolean {
    return this.#permitted.some((pattern) => subjectMatches(pattern, subject));
  }
}
