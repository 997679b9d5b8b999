// One client of the development broker: its rights, subscriptions and pending output. server.ts routes
// messages.

import type { Socket } from "node:net";
import { limits } from "../limits.ts";
import { type Interest, isValidPattern } from "../transport/subject-index.ts";
import { Outbox } from "./outbox.ts";
import { ProtocolParser, type ProtocolSink, type PublishFrame, type Violation } from "./protocol-parser.ts";

/** The server as a connection uses it. */
export interface ConnectionOwner {
  readonly maxPayloadBytes: number;
  isAuthorized(login: Login): boolean;
  /** A new INFO line, with the broker's proof for this login. */
  greet(connection: Connection, login: Login): void;
  route(from: Connection, frame: PublishFrame): void;
  addInterest(interest: Interest<ClientSubscription>): void;
  removeInterest(interest: Interest<ClientSubscription>): void;
  /** `connection` has output to write. */
  willFlush(connection: Connection): void;
  closed(connection: Connection): void;
}

/** A client's attempt to log in; texts are empty when absent. */
export interface Login {
  /** The broker's, from this connection's INFO. */
  readonly nonce: string;
  readonly answer: string;
  /** The client's random text, for the broker's proof. */
  readonly challenge: string;
  readonly nkey: string;
  readonly signature: string;
}

/** A SUB of a client. */
export class ClientSubscription {
  readonly connection: Connection;
  readonly interest: Interest<ClientSubscription>;
  readonly sid: string;
  readonly sidBytes: Uint8Array;
  delivered = 0;
  /** Ends after this many deliveries; 0: no limit. */
  max = 0;

  constructor(
    connection: Connection,
    { subject, queue, sid }: { subject: string; queue: string | undefined; sid: string },
  ) {
    this.connection = connection;
    this.interest = { pattern: subject, queue, subscriber: this };
    this.sid = sid;
    this.sidBytes = Buffer.from(sid, "latin1");
  }
}

/** Why the broker disconnects a client, in the words of nats-server. */
export type CutReason =
  | Violation
  | "Authentication Timeout"
  | "Stale Connection"
  | "Slow Consumer"
  | "maximum connections exceeded";

export class Connection implements ProtocolSink {
  /** True if the client receives its own messages. */
  isEchoing = true;
  /** True if the client wants to know when a request has no receiver. */
  wantsNoResponders = false;
  /** Random text of this connection's INFO, which the client must answer. */
  readonly nonce: string;
  /** When the INFO line was sent; the client must send CONNECT within a limited time. */
  readonly openedAt: number;
  /** True if anything arrived since the server's last check. */
  isHeard = true;
  pingsOut = 0;
  isClosed = false;
  /** Managed by the server: output is waiting. */
  isFlushDue = false;
  /** Managed by the server: `readBytes` when a publisher last waited for this client. */
  readBytesAtStall = -1;
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser: ProtocolParser;
  readonly #outbox: Outbox;
  readonly #subscriptions = new Map<string, ClientSubscription>();
  #isVerbose = false;
  #takesHeaders = false;

  constructor(
    socket: Socket,
    owner: ConnectionOwner,
    { nonce, openedAt }: { readonly nonce: string; readonly openedAt: number },
  ) {
    this.nonce = nonce;
    this.#socket = socket;
    this.#owner = owner;
    this.#parser = new ProtocolParser(this, owner.maxPayloadBytes);
    this.#outbox = new Outbox(socket);
    this.openedAt = openedAt;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("error", () => socket.destroy()); // the client is gone: `close` follows
    socket.on("close", () => this.#end());
  }

  get isAuthorized(): boolean {
    return this.#parser.isAuthorized;
  }

  get pendingBytes(): number {
    return this.#outbox.pendingBytes;
  }

  /** Grows as the client reads. */
  get readBytes(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength;
  }

  say(line: string): void {
    this.#outbox.text(`${line}\r\n`);
    this.#owner.willFlush(this);
  }

  deliver(subscription: ClientSubscription, frame: PublishFrame): void {
    if (this.isClosed) return;
    if (frame.hasHeaders && !this.#takesHeaders) this.#deliverBare(subscription, frame);
    else this.#outbox.message(frame, subscription.sidBytes);
    this.#owner.willFlush(this);
    subscription.delivered += 1;
    if (subscription.delivered === subscription.max) this.#drop(subscription);
    if (this.pendingBytes > limits.brokerPendingBytesMax) this.cut("Slow Consumer");
  }

  /** Reports that a request had no receiver, on the requester's own subscription to `reply`. */
  deliverNoResponders(subscription: ClientSubscription, reply: string): void {
    this.say(`HMSG ${reply} ${subscription.sid} 16 16\r\nNATS/1.0 503\r\n\r\n`);
    subscription.delivered += 1;
    if (subscription.delivered === subscription.max) this.#drop(subscription);
  }

  /** Sends PING; the client must respond before too many are open. */
  ask(): void {
    this.pingsOut += 1;
    this.say("PING");
  }

  flush(): void {
    if (!this.isClosed) this.#outbox.flush();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (!this.isClosed) this.#socket.resume();
  }

  /** Sends the reason and closes. */
  cut(reason: CutReason): void {
    if (this.isClosed) return;
    if (reason !== "Slow Consumer") this.#outbox.flush();
    this.#end();
    this.#hangUp(`-ERR '${reason}'\r\n`);
  }

  /** Writes the pending output and closes. */
  close(): void {
    if (this.isClosed) return;
    this.#outbox.flush();
    this.#end();
    this.#hangUp("");
  }

  connect(json: string): void {
    const options = parseOptions(json);
    if (options === undefined) return this.cut("Unknown Protocol Operation");
    const login = loginOf(options, this.nonce);
    if (!this.#owner.isAuthorized(login)) {
      this.cut("Authorization Violation");
    } else {
      if (login.challenge !== "") this.#owner.greet(this, login);
      this.isEchoing = options["echo"] !== false;
      this.#isVerbose = options["verbose"] === true;
      this.#takesHeaders = options["headers"] === true;
      this.wantsNoResponders = this.#takesHeaders && options["no_responders"] === true;
      this.#parser.isAuthorized = true;
      this.#acknowledge();
    }
  }

  publish(frame: PublishFrame): void {
    this.#owner.route(this, frame);
    this.#acknowledge();
  }

  subscribe({ subject, queue, sid }: { subject: string; queue: string | undefined; sid: string }): void {
    if (!isValidPattern(subject)) {
      this.say("-ERR 'Invalid Subject'");
    } else if (this.#subscriptions.size >= limits.brokerSubscriptionsMax) {
      this.say("-ERR 'maximum subscriptions exceeded'");
    } else {
      this.#addSubscription(new ClientSubscription(this, { subject, queue, sid }));
      this.#acknowledge();
    }
  }

  unsubscribe(sid: string, max: number): void {
    const subscription = this.#subscriptions.get(sid);
    if (subscription !== undefined) {
      subscription.max = max;
      if (subscription.delivered >= max) this.#drop(subscription);
    }
    this.#acknowledge();
  }

  ping(): void {
    this.say("PONG");
  }

  pong(): void {
    this.pingsOut = 0;
  }

  violation(violation: Violation): void {
    this.cut(violation);
  }

  #read(chunk: Buffer): void {
    this.isHeard = true;
    this.#parser.feed(chunk);
  }

  #acknowledge(): void {
    if (this.#isVerbose) this.say("+OK");
  }

  /** A client repeats its subscriptions after a reconnect: the first subscription of a sid stays. */
  #addSubscription(subscription: ClientSubscription): void {
    if (this.#subscriptions.has(subscription.sid)) return;
    this.#subscriptions.set(subscription.sid, subscription);
    this.#owner.addInterest(subscription.interest);
  }

  #drop(subscription: ClientSubscription): void {
    if (!this.#subscriptions.delete(subscription.sid)) return;
    this.#owner.removeInterest(subscription.interest);
  }

  /** For a client without support for headers: the same message without headers. */
  #deliverBare(subscription: ClientSubscription, frame: PublishFrame): void {
    const subject = frame.buffer.toString("latin1", frame.subjectStart, frame.subjectEnd);
    const reply = frame.buffer.toString("latin1", frame.replyStart, frame.replyEnd);
    const payload = frame.buffer.toString("latin1", frame.payloadStart + frame.headerBytes, frame.end);
    const words = ["MSG", subject, subscription.sid, ...(frame.replyStart < 0 ? [] : [reply])];
    this.#outbox.text(`${words.join(" ")} ${payload.length - 2}\r\n${payload}`);
  }

  /** A client that does not read would keep its socket and the pending output forever. */
  #hangUp(lastWords: string): void {
    if (this.#socket.writableLength > LAST_BYTES_MAX) {
      this.#socket.destroy();
      return;
    }
    const timer = setTimeout(() => this.#socket.destroy(), limits.closeFlushMs);
    this.#socket.once("close", () => clearTimeout(timer));
    this.#socket.end(lastWords, () => this.#socket.destroy());
  }

  #end(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#parser.stop();
    for (const subscription of [...this.#subscriptions.values()]) this.#drop(subscription);
    this.#owner.closed(this);
  }
}

/** With more pending output, the client would not read the last line anyway. */
const LAST_BYTES_MAX = 1024 * 1024;

function parseOptions(json: string): Record<string, unknown> | undefined {
  try {
    const options: unknown = JSON.parse(Buffer.from(json, "latin1").toString("utf8"));
    return typeof options === "object" && options !== null ? (options as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // answered like any invalid line
  }
}

function loginOf(options: Record<string, unknown>, nonce: string): Login {
  return {
    nonce,
    answer: textOption(options, "auth_token"),
    challenge: textOption(options, "challenge"),
    nkey: textOption(options, "nkey"),
    signature: textOption(options, "sig"),
  };
}

function textOption(options: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(options, name) ? options[name] : undefined;
  return typeof value === "string" ? value : "";
}
