// The transport within one process, for tests and simulation: a hub replaces the server. Data is neither
// serialised nor copied, so a receiver must not write into `data`.
//
// Messages are matched on publishing and delivered later, in order of publishing, never within the publisher's
// call. `cut` and `heal` break and restore a single connection.

import { type Clock, systemClock } from "../clock.ts";
import { InvalidMessageError, UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { callHandler } from "./handler.ts";
import { KeptPublishes } from "./kept-publishes.ts";
import { ended, OpenRequests } from "./open-requests.ts";
import { checkOutgoing, checkSubject } from "./outgoing.ts";
import { ReplyInbox } from "./reply-inbox.ts";
import { type Interest, isValidPattern, type QueueGroup, SubjectIndex } from "./subject-index.ts";
import type {
  ConnectionStatus,
  Message,
  RequestOptions,
  RequestOutcome,
  SubscribeOptions,
  Subscription,
  Transport,
} from "./transport.ts";

export interface MemoryHubOptions {
  /** Default: the default of nats-server. */
  readonly maxPayloadBytes?: number;
  /** Default `_INBOX`. */
  readonly inboxPrefix?: string;
  /** Clock for the timeouts of requests. Default: the system's. */
  readonly clock?: Clock;
  /** Schedules a delivery. Default `queueMicrotask`: handlers that answer each other endlessly starve timers. A
   *  simulator passes its clock's `soon`. */
  readonly defer?: (run: () => void) => void;
}

/** The server. Connections of different hubs do not hear each other. */
export class MemoryHub {
  readonly maxPayloadBytes: number;
  readonly inboxPrefix: string;
  readonly clock: Clock;
  readonly #defer: (run: () => void) => void;
  readonly #index = new SubjectIndex<MemorySubscription>();
  #queue: (() => void)[] = [];
  #isDraining = false;
  #connected = 0;

  constructor(options: MemoryHubOptions = {}) {
    this.maxPayloadBytes = options.maxPayloadBytes ?? limits.maxPayloadBytesDefault;
    this.inboxPrefix = options.inboxPrefix ?? "_INBOX";
    this.clock = options.clock ?? systemClock;
    this.#defer = options.defer ?? queueMicrotask;
  }

  connect(): Transport {
    this.#connected += 1;
    return new MemoryTransport(this, `${this.inboxPrefix}.memory${this.#connected}`);
  }

  /** Breaks the connection: open requests end as `disconnected`, nothing arrives, and published messages wait.
   *  No effect on a cut or closed connection. */
  cut(transport: Transport): void {
    asMemory(transport).lose();
  }

  /** Restores the connection: subscriptions resume, then waiting messages are sent. */
  heal(transport: Transport): void {
    asMemory(transport).restore();
  }

  /** @returns true if the message has a receiver */
  route(message: Message): boolean {
    const { each, groups } = this.#index.match(message.subject);
    for (const subscription of each) this.#deliver(subscription, message);
    for (const group of groups) this.#deliver(nextMember(group), message);
    return each.length + groups.length > 0;
  }

  /** Runs after everything scheduled before. */
  putOff(run: () => void): void {
    this.#queue.push(run);
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#defer(() => this.#drain());
  }

  addInterest(interest: Interest<MemorySubscription>): void {
    this.#index.add(interest);
  }

  removeInterest(interest: Interest<MemorySubscription>): void {
    this.#index.remove(interest);
  }

  #deliver(subscription: MemorySubscription, message: Message): void {
    const { connection } = subscription;
    this.putOff(() => {
      if (subscription.connection === connection) subscription.receive(message);
    });
  }

  #drain(): void {
    while (this.#queue.length > 0) {
      const round = this.#queue;
      this.#queue = [];
      for (const run of round) run();
    }
    this.#isDraining = false;
  }
}

/** A subscription of a connection. `connection` is the number of the present connection, undefined after
 *  unsubscribing, so that a message in flight on a broken connection is lost. */
class MemorySubscription {
  readonly interest: Interest<MemorySubscription>;
  connection: number | undefined;
  readonly #handler: (message: Message) => void;

  constructor(pattern: string, handler: (message: Message) => void, queue: string | undefined) {
    this.interest = { pattern, queue, subscriber: this };
    this.#handler = handler;
  }

  receive(message: Message): void {
    callHandler(this.#handler, message);
  }
}

class MemoryTransport implements Transport {
  readonly inboxPrefix: string;
  readonly maxPayloadBytes: number;
  readonly #hub: MemoryHub;
  readonly #inbox: ReplyInbox;
  readonly #requests: OpenRequests;
  readonly #kept = new KeptPublishes();
  readonly #subscriptions = new Set<MemorySubscription>();
  readonly #listeners = new Listeners<[ConnectionStatus]>();
  #status: ConnectionStatus = "connected";
  #connection = 1;

  constructor(hub: MemoryHub, inbox: string) {
    this.#hub = hub;
    this.#inbox = new ReplyInbox(inbox, (pattern) => this.#listenForAnswers(pattern));
    this.inboxPrefix = hub.inboxPrefix;
    this.maxPayloadBytes = hub.maxPayloadBytes;
    this.#requests = new OpenRequests(hub.clock);
  }

  publish(subject: string, data: Uint8Array, reply?: string): void {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (reply !== undefined) checkSubject(reply);
    if (this.#status === "connected") this.#hub.route({ subject, data, reply });
    else if (this.#status === "reconnecting") this.#kept.keep({ subject, data, reply });
  }

  async request(subject: string, data: Uint8Array, options: RequestOptions): Promise<RequestOutcome> {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (this.#status !== "connected") return ended.disconnected;
    if (options.signal?.aborted) return ended.timeout;
    this.#inbox.open();
    const { token, outcome } = this.#requests.open(options);
    const isHeard = this.#hub.route({ subject, data, reply: this.#inbox.replyTo(token) });
    if (!isHeard) this.#requests.settle(token, ended["no-responders"]);
    return await outcome;
  }

  subscribe(
    subject: string,
    handler: (message: Message) => void,
    options: SubscribeOptions = {},
  ): Subscription {
    if (!isValidPattern(subject)) throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
    const subscription = new MemorySubscription(subject, handler, options.queue);
    if (this.#status !== "closed") this.#subscriptions.add(subscription);
    if (this.#status === "connected") this.#announce(subscription);
    return {
      unsubscribe: () => {
        this.#subscriptions.delete(subscription);
        this.#withdraw(subscription);
      },
    };
  }

  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    return this.#listeners.add(listener);
  }

  status(): ConnectionStatus {
    return this.#status;
  }

  async flush(): Promise<void> {
    if (this.#status !== "connected") throw new UnreachableError(`cannot flush while ${this.#status}`);
    await new Promise<void>((resolve) => this.#hub.putOff(resolve));
  }

  async close(): Promise<void> {
    if (this.#status === "closed") return;
    this.#disconnect("closed");
    this.#subscriptions.clear();
  }

  lose(): void {
    if (this.#status === "connected") this.#disconnect("reconnecting");
  }

  restore(): void {
    if (this.#status !== "reconnecting") return;
    this.#connection += 1;
    this.#status = "connected";
    for (const subscription of this.#subscriptions) this.#announce(subscription);
    for (const message of this.#kept.take()) this.#hub.route(message);
    this.#listeners.notify(this.#status);
  }

  #disconnect(status: "reconnecting" | "closed"): void {
    this.#status = status;
    for (const subscription of this.#subscriptions) this.#withdraw(subscription);
    this.#requests.settleAll("disconnected");
    this.#listeners.notify(this.#status);
  }

  #announce(subscription: MemorySubscription): void {
    subscription.connection = this.#connection;
    this.#hub.addInterest(subscription.interest);
  }

  #withdraw(subscription: MemorySubscription): void {
    if (subscription.connection === undefined) return;
    subscription.connection = undefined;
    this.#hub.removeInterest(subscription.interest);
  }

  #listenForAnswers(pattern: string): void {
    this.subscribe(pattern, ({ subject, data }) => {
      this.#requests.settle(this.#inbox.tokenOf(subject), { kind: "answered", data });
    });
  }
}

function nextMember(group: QueueGroup<MemorySubscription>): MemorySubscription {
  const member = group.members[group.turn.next % group.members.length];
  group.turn.next += 1;
  if (member === undefined) throw new RangeError("a queue group has members");
  return member;
}

function asMemory(transport: Transport): MemoryTransport {
  if (transport instanceof MemoryTransport) return transport;
  throw new TypeError("only a connection of a MemoryHub can be cut and healed");
}
