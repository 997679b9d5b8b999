// The connection of a process to the simulated server: the transport of the production code. It behaves like a
// connection to NATS: publishes may be lost, but subscriptions last as long as the connection. When the connection
// breaks, all open requests end as `disconnected`, and the connection reconnects by itself.

import { InvalidMessageError, UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { Listeners } from "../../listeners.ts";
import { KeptPublishes } from "../../transport/kept-publishes.ts";
import { ended, OpenRequests } from "../../transport/open-requests.ts";
import { checkOutgoing, checkSubject } from "../../transport/outgoing.ts";
import { ReplyInbox } from "../../transport/reply-inbox.ts";
import { type Interest, isValidPattern } from "../../transport/subject-index.ts";
import type {
  ConnectionStatus,
  Message,
  RequestOptions,
  RequestOutcome,
  SubscribeOptions,
  Subscription,
  Transport,
} from "../../transport/transport.ts";
import type { Engine } from "./engine.ts";
import type { Link } from "./link.ts";
import type { Server, Subscriber } from "./server.ts";
import type { Session } from "./session.ts";

interface Deps {
  readonly engine: Engine;
  readonly session: Session;
  readonly link: Link;
  readonly server: Server;
  /** The subject on which coordinators announce how much of the journal they hold. */
  readonly coordinatorSubject: string;
  /** Delay until the server notices the end of the process, ms. */
  readonly lingerMs: number;
}

export class Connection implements Transport {
  readonly inboxPrefix = "_INBOX";
  readonly maxPayloadBytes = limits.maxPayloadBytesDefault;
  /** Called with a request that the network delivers a second time. */
  onCopy: ((message: Message) => void) | undefined;
  readonly #deps: Deps;
  readonly #inbox: ReplyInbox;
  readonly #requests: OpenRequests;
  readonly #kept = new KeptPublishes();
  readonly #subscriptions = new Set<LiveSubscription>();
  readonly #listeners = new Listeners<[ConnectionStatus]>();
  readonly #flushes = new Set<(error: Error) => void>();
  #status: ConnectionStatus = "connected";
  /** Counts connections: messages on their way are lost when the connection breaks. */
  #epoch = 1;

  constructor(deps: Deps) {
    this.#deps = deps;
    const inbox = `${this.inboxPrefix}.${deps.session.random.id(12)}`;
    this.#inbox = new ReplyInbox(inbox, (pattern) => this.#listenForAnswers(pattern));
    this.#requests = new OpenRequests(deps.session.clock);
    deps.session.onEnd(() => this.#vanish());
  }

  publish(subject: string, data: Uint8Array, reply?: string): void {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (reply !== undefined) checkSubject(reply);
    if (this.#status === "connected") this.#send({ subject, data, reply });
    else if (this.#status === "reconnecting") this.#kept.keep({ subject, data, reply });
  }

  async request(subject: string, data: Uint8Array, options: RequestOptions): Promise<RequestOutcome> {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (this.#status !== "connected") return ended.disconnected;
    if (options.signal?.aborted) return ended.timeout;
    this.#inbox.open();
    const { token, outcome } = this.#requests.open(options);
    this.#send({ subject, data, reply: this.#inbox.replyTo(token) }, () =>
      this.#requests.settle(token, ended["no-responders"]),
    );
    return await outcome;
  }

  subscribe(
    subject: string,
    handler: (message: Message) => void,
    options: SubscribeOptions = {},
  ): Subscription {
    if (!isValidPattern(subject)) throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
    const subscription = new LiveSubscription(this, subject, handler, options.queue);
    if (this.#status !== "closed") this.#subscriptions.add(subscription);
    if (this.#status === "connected") this.#announce(subscription);
    return {
      unsubscribe: () => {
        if (!this.#subscriptions.delete(subscription)) return;
        subscription.isActive = false;
        this.#deps.link.carrySurely("up", () => this.#deps.server.remove(subscription.interest));
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
    const { link, session } = this.#deps;
    await new Promise<void>((resolve, reject) => {
      this.#flushes.add(reject);
      link.carrySurely("up", () =>
        link.carrySurely(
          "down",
          () => {
            this.#flushes.delete(reject);
            resolve();
          },
          session,
        ),
      );
    });
  }

  async close(): Promise<void> {
    if (this.#status !== "closed") this.#break("closed");
  }

  /** The side of the link in a partition. */
  get side(): string {
    return this.#deps.link.side;
  }

  /** Breaks the connection; it reconnects as soon as the link allows. */
  lose(): void {
    if (this.#status !== "connected") return;
    this.#deps.session.after(0, "lost", () => {
      if (this.#status !== "connected") return;
      this.#break("reconnecting");
      this.#tryAgain(limits.reconnectMs);
    });
  }

  /** Carries a message for a subscription from the server. */
  bring(subscription: LiveSubscription, message: Message): void {
    const epoch = this.#epoch;
    const { link, session } = this.#deps;
    if (session.hasEnded || this.#isLostToOne(message)) return;
    let copies = 0;
    link.carry(
      "down",
      () => {
        copies += 1;
        if (copies > 1 && message.reply !== undefined) this.onCopy?.(message);
        if (epoch === this.#epoch && subscription.isActive) subscription.receive(message);
      },
      session,
    );
  }

  #send(message: Message, onNobody?: () => void): void {
    const { link, server, session } = this.#deps;
    if (this.#isLostToOne(message)) return;
    let copies = 0;
    link.carry("up", () => {
      copies += 1;
      if (copies > 1 && message.reply !== undefined) this.onCopy?.(message);
      const isHeard = server.route(message, link.side);
      if (!isHeard && onNobody !== undefined) link.carry("down", onNobody, session);
    });
  }

  #isLostToOne({ subject }: Message): boolean {
    return this.#deps.link.isAlone && subject === this.#deps.coordinatorSubject;
  }

  #tryAgain(ms: number): void {
    const { session, link } = this.#deps;
    session.after(ms * (0.5 + session.random.next() / 2), "reconnect", () => {
      if (this.#status !== "reconnecting") return;
      if (link.isDown) return this.#tryAgain(Math.min(limits.reconnectMsMax, 2 * ms));
      this.#epoch += 1;
      link.renew();
      this.#status = "connected";
      for (const subscription of this.#subscriptions) this.#announce(subscription);
      for (const { subject, data, reply } of this.#kept.take()) this.#send({ subject, data, reply });
      this.#listeners.notify(this.#status);
    });
  }

  #break(status: "reconnecting" | "closed"): void {
    this.#status = status;
    this.#epoch += 1;
    for (const { interest } of this.#subscriptions) this.#deps.server.remove(interest);
    if (status === "closed") this.#subscriptions.clear();
    this.#requests.settleAll("disconnected");
    for (const reject of this.#flushes) reject(new UnreachableError("the connection was lost"));
    this.#flushes.clear();
    this.#listeners.notify(this.#status);
  }

  /** The server notices at once or after `lingerMs`; until then it still counts the subscriptions. */
  #vanish(): void {
    const { engine, server, lingerMs } = this.#deps;
    const subscriptions = [...this.#subscriptions];
    this.#requests.settleAll("disconnected"); // only the recorder hears it
    for (const subscription of subscriptions) subscription.isActive = false;
    engine.after(lingerMs, "gone", () => {
      for (const { interest } of subscriptions) server.remove(interest);
    });
  }

  #announce(subscription: LiveSubscription): void {
    const epoch = this.#epoch;
    this.#deps.link.carrySurely("up", () => {
      if (epoch === this.#epoch && subscription.isActive) this.#deps.server.add(subscription.interest);
    });
  }

  #listenForAnswers(pattern: string): void {
    this.subscribe(pattern, ({ subject, data }) => {
      this.#requests.settle(this.#inbox.tokenOf(subject), { kind: "answered", data });
    });
  }
}

class LiveSubscription implements Subscriber {
  readonly interest: Interest<Subscriber>;
  isActive = true;
  readonly #connection: Connection;
  readonly #handler: (message: Message) => void;

  constructor(
    connection: Connection,
    pattern: string,
    handler: (message: Message) => void,
    queue: string | undefined,
  ) {
    this.interest = { pattern, queue, subscriber: this };
    this.#connection = connection;
    this.#handler = handler;
  }

  get side(): string {
    return this.#connection.side;
  }

  deliver(message: Message): void {
    this.#connection.bring(this, message);
  }

  /** An error thrown by the handler ends the seed: no handler may throw. */
  receive(message: Message): void {
    this.#handler(message);
  }
}
