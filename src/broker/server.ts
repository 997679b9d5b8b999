// The development broker: core NATS for one machine without a nats-server. No JetStream, clusters, TLS or
// permissions: each client that proves to know the secret may do everything. Clients see the behaviour of
// nats-server: a single conformance suite covers both (test/transport/conformance.ts).
//
// Output is written once per turn of the event loop, for all clients with output. A client that reads more
// slowly than others write delays the writers a little, and is disconnected if the delay does not help.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { limits } from "../limits.ts";
import {
  brokerProof,
  clientAnswer,
  freshNonce,
  type Handshake,
  isSameText,
} from "../transport/mutual-proof.ts";
import { type Interest, type QueueGroup, SubjectIndex } from "../transport/subject-index.ts";
import { type ClientSubscription, Connection, type ConnectionOwner, type Login } from "./connection.ts";
import type { PublishFrame } from "./protocol-parser.ts";
import { UserKey } from "./user-key.ts";

/** Version shown to clients: the features of core NATS 2.9. */
export const DEVELOPMENT_BROKER_VERSION = "2.9.0-waggle";

export interface DevelopmentBrokerOptions {
  /** Secret that clients must prove to know (transport/mutual-proof.ts). Not empty. */
  readonly secret: string;
  /** Public key of a user who may log in by a signature instead (nkey). */
  readonly userKey?: string | undefined;
  /** 0: any free port. */
  readonly port: number;
  /** Name in INFO, which identifies the broker. */
  readonly serverName: string;
  readonly maxPayloadBytes?: number;
  readonly pingMs?: number;
  readonly connectMs?: number;
}

export class DevelopmentBroker implements ConnectionOwner {
  readonly maxPayloadBytes: number;
  readonly #options: DevelopmentBrokerOptions;
  readonly #userKey: UserKey | undefined;
  readonly #serverId = randomBytes(16).toString("hex").toUpperCase();
  readonly #server: Server;
  readonly #index = new SubjectIndex<ClientSubscription>();
  readonly #connections = new Set<Connection>();
  readonly #held = new Set<Connection>();
  #toFlush: Connection[] = [];
  #clients = 0;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: DevelopmentBrokerOptions) {
    if (options.secret === "") throw new RangeError("a broker needs a secret");
    this.#options = options;
    this.#userKey = options.userKey === undefined ? undefined : new UserKey(options.userKey);
    this.maxPayloadBytes = options.maxPayloadBytes ?? limits.maxPayloadBytesDefault;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Holding the port is the lock: rejects with EADDRINUSE when the port is taken.
   *  @returns the port */
  async listen(): Promise<number> {
    this.#server.listen({ host: "127.0.0.1", port: this.#options.port, exclusive: true });
    await once(this.#server, "listening"); // rejects on "error"
    const { pingMs = limits.brokerPingMs, connectMs = limits.brokerConnectMs } = this.#options;
    this.#timers = [
      setInterval(() => this.#pingAll(), pingMs),
      setInterval(() => this.#cutSilent(connectMs), connectMs / 2),
    ];
    return this.port;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Writes pending output, closes all connections and the port. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const connection of [...this.#connections]) connection.close();
    await closed;
  }

  isAuthorized(login: Login): boolean {
    const { nkey, signature, nonce, answer } = login;
    if (nkey === "") return isSameText(answer, clientAnswer(this.#handshake(login)));
    return this.#userKey?.text === nkey && this.#userKey.hasSigned(nonce, signature);
  }

  greet(connection: Connection, login?: Login): void {
    const proof = login === undefined ? {} : { proof: brokerProof(this.#handshake(login)) };
    connection.say(`INFO ${JSON.stringify({ ...this.#info(connection), ...proof })}`);
  }

  route(from: Connection, frame: PublishFrame): void {
    const receivers = this.#receiversOf(frame);
    let isHeard = false;
    for (const subscription of receivers.each) {
      if (this.#deliver(from, subscription, frame)) isHeard = true;
    }
    for (const group of receivers.groups) {
      if (this.#deliverToOne(from, group, frame)) isHeard = true;
    }
    if (!isHeard && frame.replyStart >= 0 && from.wantsNoResponders) this.#sendNoResponders(from, frame);
  }

  addInterest(interest: Interest<ClientSubscription>): void {
    this.#index.add(interest);
  }

  removeInterest(interest: Interest<ClientSubscription>): void {
    this.#index.remove(interest);
  }

  /** Writes after all input of this turn of the event loop was read. */
  willFlush(connection: Connection): void {
    if (connection.isFlushDue) return;
    connection.isFlushDue = true;
    if (this.#toFlush.length === 0) setImmediate(() => this.#flush());
    this.#toFlush.push(connection);
  }

  closed(connection: Connection): void {
    this.#connections.delete(connection);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this, {
      nonce: freshNonce(this.port),
      openedAt: performance.now(),
    });
    this.#clients += 1;
    if (this.#connections.size >= limits.brokerConnectionsMax) {
      connection.cut("maximum connections exceeded");
      return;
    }
    this.#connections.add(connection);
    this.greet(connection);
  }

  #handshake({ nonce, challenge }: Login): Handshake {
    return { secret: this.#options.secret, nonce, challenge };
  }

  #info({ nonce }: Connection): Record<string, unknown> {
    return {
      server_id: this.#serverId,
      server_name: this.#options.serverName,
      version: DEVELOPMENT_BROKER_VERSION,
      proto: 1,
      go: "",
      host: "127.0.0.1",
      port: this.port,
      headers: true,
      auth_required: true,
      nonce,
      max_payload: this.maxPayloadBytes,
      client_id: this.#clients,
    };
  }

  #receiversOf({ buffer, subjectStart, subjectEnd }: PublishFrame) {
    return this.#index.match(buffer.toString("latin1", subjectStart, subjectEnd));
  }

  #deliver(from: Connection, subscription: ClientSubscription, frame: PublishFrame): boolean {
    const { connection } = subscription;
    if (connection === from && !from.isEchoing) return false;
    connection.deliver(subscription, frame);
    if (connection.pendingBytes > limits.brokerStallBytes) this.#holdBack(from, connection);
    return true;
  }

  /** Delivers to the member whose turn it is, or to the next eligible member. */
  #deliverToOne(from: Connection, group: QueueGroup<ClientSubscription>, frame: PublishFrame): boolean {
    const { members, turn } = group;
    for (let tried = 0; tried < members.length; tried += 1) {
      const member = members[turn.next % members.length];
      turn.next += 1;
      if (member !== undefined && this.#deliver(from, member, frame)) return true;
    }
    return false;
  }

  #sendNoResponders(from: Connection, { buffer, replyStart, replyEnd }: PublishFrame): void {
    const reply = buffer.toString("latin1", replyStart, replyEnd);
    const own = this.#index.match(reply).each.find(({ connection }) => connection === from);
    if (own !== undefined) from.deliverNoResponders(own, reply);
  }

  #flush(): void {
    const connections = this.#toFlush;
    this.#toFlush = [];
    for (const connection of connections) {
      connection.isFlushDue = false;
      connection.flush();
    }
  }

  /** A publisher waits for a slow reader as long as the reader reads at all. */
  #holdBack(publisher: Connection, reader: Connection): void {
    if (this.#held.has(publisher) || reader.readBytes === reader.readBytesAtStall) return;
    reader.readBytesAtStall = reader.readBytes;
    this.#held.add(publisher);
    publisher.pause();
    setTimeout(() => {
      this.#held.delete(publisher);
      publisher.resume();
    }, limits.brokerStallMs);
  }

  #pingAll(): void {
    for (const connection of [...this.#connections]) {
      if (!connection.isAuthorized) continue;
      if (connection.isHeard) connection.pingsOut = 0;
      connection.isHeard = false;
      if (connection.pingsOut >= limits.brokerPingsMax) connection.cut("Stale Connection");
      else connection.ask();
    }
  }

  #cutSilent(connectMs: number): void {
    const latest = performance.now() - connectMs;
    for (const connection of [...this.#connections]) {
      if (!connection.isAuthorized && connection.openedAt < latest) connection.cut("Authentication Timeout");
    }
  }
}
