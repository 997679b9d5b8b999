// Opens the journal on NATS servers with JetStream. The journal has a connection of its own, shared by all segments.
// The rules of streams are in stream/; nats.ts alone knows the client library.

import {
  createInbox,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Status,
} from "@nats-io/transport-node";
import { systemClock } from "../clock.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { type NatsOptions, openNatsConnection, violationIn } from "../transport/nats.ts";
import { ended, OpenRequests } from "../transport/open-requests.ts";
import type { Forbidden } from "../transport/transport.ts";
import type { Journal } from "./journal.ts";
import {
  inspectStreams,
  type JournalInspection,
  type OpeningOptions,
  openStreamJournal,
  type StreamsOptions,
} from "./stream/opening.ts";
import type {
  AskOptions,
  Listening,
  StreamMessage,
  StreamOutcome,
  StreamStatus,
  StreamWire,
} from "./stream/wire.ts";

export interface NatsJournalOptions extends OpeningOptions {
  readonly connection: NatsOptions;
}

/** @throws as `openStreamJournal` */
export async function openNatsJournal(options: NatsJournalOptions): Promise<Journal> {
  const wire = await openWire(options);
  try {
    return await openStreamJournal(wire, options);
  } catch (error) {
    await wire.close();
    throw error;
  }
}

/** The journal's streams and settings on the server, for `waggle doctor`. @throws as `inspectStreams` */
export async function inspectNatsStreams(
  options: StreamsOptions & Pick<NatsJournalOptions, "connection">,
): Promise<JournalInspection> {
  const wire = await openWire(options);
  try {
    return await inspectStreams(wire, options);
  } finally {
    await wire.close();
  }
}

async function openWire({
  connection,
  signal,
}: StreamsOptions & Pick<NatsJournalOptions, "connection">): Promise<NatsWire> {
  const options = signal === undefined ? connection : { ...connection, signal };
  return new NatsWire(await openNatsConnection(options), options);
}

class NatsWire implements StreamWire {
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string | undefined;
  readonly #onError: (error: Error) => void;
  readonly #requests = new OpenRequests<Forbidden>(systemClock);
  readonly #listeners = new Listeners();
  #status: StreamWire["status"] = "connected";
  /** Undefined until the first request, and after the server forbids the inbox. */
  #answers: Listening | undefined;

  constructor(connection: NatsConnection, { inboxPrefix, onError }: NatsOptions) {
    this.#connection = connection;
    this.#inboxPrefix = inboxPrefix;
    this.#onError = onError ?? (() => undefined);
    void this.#watch();
  }

  get status() {
    return this.#status;
  }

  get maxPayloadBytes() {
    return this.#connection.info?.max_payload ?? limits.maxPayloadBytesDefault;
  }

  get servers(): StreamWire["servers"] {
    const { info } = this.#connection;
    if (info === undefined || info.cluster !== undefined) return "cluster";
    return info.jetstream === true ? "one" : "without-jetstream";
  }

  get serverVersion() {
    return this.#connection.info?.version ?? "";
  }

  async ask(subject: string, data: Uint8Array, options: AskOptions): Promise<StreamOutcome> {
    if (!this.#isConnected) return ended.disconnected;
    this.#answers ??= this.#subscribe(
      ".*",
      (message) => this.#answer(message),
      () => {
        this.#answers = undefined;
      },
    );
    const { token, outcome } = this.#requests.open({ timeoutMs: options.timeoutMs }, subject);
    this.#send(subject, data, `${this.#answers.inbox}.${token}`, options.headers);
    return await outcome;
  }

  publish(subject: string, data: Uint8Array, reply: string): void {
    if (this.#isConnected) this.#send(subject, data, reply);
  }

  listen(handler: (message: StreamMessage) => void): Listening {
    return this.#subscribe("", (message) => handler(messageOf(message)));
  }

  onStatus(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#become("closed");
    await this.#connection.close();
  }

  #send(subject: string, data: Uint8Array, reply: string, fields?: AskOptions["headers"]): void {
    if (fields === undefined) this.#connection.publish(subject, data, { reply });
    else this.#connection.publish(subject, data, { reply, headers: toHeaders(fields) });
  }

  /** The NATS library closes a connection before its status event arrives, so both are checked. */
  get #isConnected(): boolean {
    return this.#status === "connected" && !this.#connection.isClosed();
  }

  #subscribe(suffix: string, handler: (message: Msg) => void, onError = () => undefined): Listening {
    const inbox = createInbox(this.#inboxPrefix);
    if (this.#connection.isClosed()) return { inbox, stop: () => undefined };
    const subscription = this.#connection.subscribe(`${inbox}${suffix}`, {
      callback: (error, message) => {
        if (error === null) return handler(message);
        onError();
        if (!this.#isViolation(error)) this.#onError(error);
      },
    });
    return { inbox, stop: () => subscription.unsubscribe() };
  }

  #answer(message: Msg): void {
    const token = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    const isUnserved = message.data.length === 0 && message.headers?.code === 503;
    const outcome = isUnserved ? ended["no-responders"] : ({ kind: "answered", data: message.data } as const);
    this.#requests.settle(token, outcome);
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) this.#follow(status);
    this.#become("closed");
  }

  #follow(status: Status): void {
    if (status.type === "disconnect") this.#become("reconnecting");
    if (status.type === "error") {
      this.#isViolation(status.error);
      this.#onError(status.error);
    }
    if (status.type === "reconnect") this.#become("connected");
  }

  /** Ends the requests to a forbidden subject, which were not sent; without the inbox, all requests. */
  #isViolation(error: Error): boolean {
    const violation = violationIn(error);
    if (violation === undefined) return false;
    const subject = violation.operation === "publish" ? violation.subject : undefined;
    this.#requests.settleOf(subject, { kind: "forbidden", ...violation });
    return true;
  }

  #become(status: StreamWire["status"]): void {
    if (this.#status === status || this.#status === "closed") return;
    this.#status = status;
    if (status !== "connected") this.#requests.settleAll("disconnected");
    this.#listeners.notify();
  }
}

/** The headers are decoded on access only: a record needs no more than the reply subject. */
function messageOf(message: Msg): StreamMessage {
  return {
    subject: message.subject,
    reply: message.reply ?? "",
    data: message.data,
    get status() {
      return statusIn(message.headers);
    },
  };
}

function statusIn(fields: MsgHdrs | undefined): StreamStatus | undefined {
  if (fields === undefined || fields.code === 0) return undefined;
  const { code, description } = fields;
  const numberIn = (name: string) => (fields.has(name) ? Number(fields.get(name)) : undefined);
  return {
    code,
    description,
    lastConsumerSeq: numberIn("Nats-Last-Consumer"),
    lastStreamSeq: numberIn("Nats-Last-Stream"),
  };
}

/** The library asks the headers of a publish for their bytes only. The library's own headers check each character, and
 *  take several times as long. The journal's names and values need no check. */
function toHeaders(fields: Readonly<Record<string, string>>): MsgHdrs {
  let text = "NATS/1.0\r\n";
  for (const name in fields) text += `${name}: ${fields[name]}\r\n`;
  const bytes = Buffer.from(`${text}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
}
