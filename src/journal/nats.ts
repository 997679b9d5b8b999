// The journal and the snapshots on a NATS server with JetStream, each over a connection of its own: opens it, and the
// stream `WAGGLE_<swarm>` or `WAGGLE_<swarm>_SNAP` on it. What is then done with the streams: stream-journal.ts,
// stream/snapshots.ts.

import {
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Status,
} from "@nats-io/transport-node";
import { systemClock } from "../clock.ts";
import { BrokerError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { type NatsOptions, openNatsConnection } from "../transport/nats.ts";
import { ended, OpenRequests } from "../transport/open-requests.ts";
import type { RequestOutcome } from "../transport/transport.ts";
import type { Journal } from "./journal.ts";
import type { SnapshotStore } from "./snapshot-store.ts";
import { inspectStreams, type StreamsInspection } from "./stream/inspection.ts";
import {
  type OpeningOptions,
  type OpeningWire,
  openStream,
  recreateSnapshots,
  removeUnusedJournal,
} from "./stream/opening.ts";
import { streamNameOf } from "./stream/settings.ts";
import { StreamSnapshotStore } from "./stream/snapshots.ts";
import { StreamJournal } from "./stream/stream-journal.ts";
import type { AskOptions, Listening, StreamMessage, StreamStatus, StreamWire } from "./stream/wire.ts";

export interface NatsJournalOptions extends Omit<OpeningOptions, "purpose"> {
  readonly connection: NatsOptions;
}

/** @throws UnreachableError; BrokerError where JetStream is off or the stream cannot be created;
 *  WaggleError WAGGLE_JOURNAL_SETTINGS where the stream is missing or not what it must be;
 *  JournalDamagedError where only its snapshots are there */
export async function openNatsJournal(options: NatsJournalOptions): Promise<Journal> {
  return (await openJournal(options)).journal;
}

/** The snapshots of a swarm whose journal is there: opened first, for their stream says that it was
 *  (stream/opening.ts). @throws as `openNatsJournal` */
export async function openNatsSnapshots(options: NatsJournalOptions): Promise<SnapshotStore> {
  return await openSnapshots(options, { isJournalNew: false });
}

/** As the two above, in this order, for a coordinator: where there is no room for the snapshots, a journal that this
 *  created is not left behind. @throws as `openNatsJournal`, both */
export async function openNatsStreams(options: NatsJournalOptions): Promise<{
  readonly journal: Journal;
  readonly openSnapshots: () => Promise<SnapshotStore>;
}> {
  const { journal, isNew } = await openJournal(options);
  return { journal, openSnapshots: () => openSnapshots(options, { isJournalNew: isNew }) };
}

async function openJournal(options: NatsJournalOptions) {
  const wanted = { ...options, purpose: "journal" } as const;
  const wire = await openWire(options);
  try {
    const { config, created, isNew } = await openStream(wire, wanted);
    const subject = subjectsOf(wanted.swarm).journal;
    const replicas = Number(config["num_replicas"]);
    const journal = new StreamJournal({ wire, stream: streamNameOf(wanted), subject, replicas, created });
    return { journal, isNew };
  } catch (error) {
    await wire.close();
    throw error;
  }
}

async function openSnapshots(
  options: NatsJournalOptions,
  { isJournalNew }: { readonly isJournalNew: boolean },
): Promise<SnapshotStore> {
  const wanted = { ...options, purpose: "snapshots" } as const;
  const wire = await openWire(options);
  try {
    await openStream(wire, wanted);
    return new StreamSnapshotStore({
      wire,
      stream: streamNameOf(wanted),
      subjects: subjectsOf(wanted.swarm),
      ...(options.create ? { recreate: () => recreateSnapshots(wire, wanted) } : {}),
    });
  } catch (error) {
    // Left behind it is harmless; why there are no snapshots is what is told.
    if (isJournalNew && error instanceof BrokerError)
      await removeUnusedJournal(wire, options).catch(() => undefined);
    await wire.close();
    throw error;
  }
}

/** The journal's stream and its snapshots' as the server has them, for `waggle doctor`. Changes nothing.
 *  @throws UnreachableError where there is no server */
export async function inspectNatsStreams(
  options: Omit<NatsJournalOptions, "create">,
): Promise<StreamsInspection> {
  const wire = await openWire(options);
  try {
    return await inspectStreams(wire, options);
  } finally {
    await wire.close();
  }
}

async function openWire({ connection, signal }: { connection: NatsOptions; signal?: AbortSignal }) {
  const options = signal === undefined ? connection : { ...connection, signal };
  return new NatsWire(await openNatsConnection(options), options);
}

class NatsWire implements OpeningWire {
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string | undefined;
  readonly #onError: (error: Error) => void;
  readonly #answers: Listening;
  readonly #requests = new OpenRequests(systemClock);
  readonly #listeners = new Listeners();
  #status: StreamWire["status"] = "connected";

  constructor(connection: NatsConnection, { inboxPrefix, onError }: NatsOptions) {
    this.#connection = connection;
    this.#inboxPrefix = inboxPrefix;
    this.#onError = onError ?? (() => undefined);
    this.#answers = this.#subscribe(".*", (message) => this.#answer(message));
    void this.#watch();
  }

  get status() {
    return this.#status;
  }

  get maxPayloadBytes() {
    return this.#connection.info?.max_payload ?? limits.maxPayloadBytesDefault;
  }

  /** A server of a cluster may pass questions on to one that has JetStream. */
  get mayHaveJetStream(): boolean {
    const { info } = this.#connection;
    return info === undefined || info.jetstream === true || info.cluster !== undefined;
  }

  async ask(subject: string, data: Uint8Array, options: AskOptions): Promise<RequestOutcome> {
    if (!this.#isConnected) return ended.disconnected;
    const { token, outcome } = this.#requests.open({ timeoutMs: options.timeoutMs });
    this.#send(subject, data, `${this.#answers.inbox}.${token}`, options.headers);
    return await outcome;
  }

  publish(subject: string, data: Uint8Array, reply: string): void {
    if (this.#isConnected) this.#send(subject, data, reply);
  }

  listen(handler: (message: StreamMessage) => void): Listening {
    return this.#subscribe("", (message) => handler(new WireMessage(message)));
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

  /** The library knows of its end before it tells. */
  get #isConnected(): boolean {
    return this.#status === "connected" && !this.#connection.isClosed();
  }

  #subscribe(suffix: string, handler: (message: Msg) => void): Listening {
    const inbox = createInbox(this.#inboxPrefix);
    if (this.#connection.isClosed()) return { inbox, stop: () => undefined };
    const subscription = this.#connection.subscribe(`${inbox}${suffix}`, {
      callback: (error, message) => (error === null ? handler(message) : this.#onError(error)),
    });
    return { inbox, stop: () => subscription.unsubscribe() };
  }

  #answer(message: Msg): void {
    const token = message.subject.slice(this.#answers.inbox.length + 1);
    const isNobody = message.data.length === 0 && message.headers?.code === 503;
    const outcome = isNobody ? ended["no-responders"] : ({ kind: "answered", data: message.data } as const);
    this.#requests.settle(token, outcome);
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) this.#follow(status);
    this.#become("closed");
  }

  #follow(status: Status): void {
    if (status.type === "disconnect") this.#become("reconnecting");
    if (status.type === "error") this.#onError(status.error);
    if (status.type === "reconnect") this.#become("connected");
  }

  #become(status: StreamWire["status"]): void {
    if (this.#status === status || this.#status === "closed") return;
    this.#status = status;
    if (status !== "connected") this.#requests.settleAll("disconnected");
    this.#listeners.tell();
  }
}

/** Decodes what is looked at and nothing else: of records, the reply subject. */
class WireMessage implements StreamMessage {
  readonly #message: Msg;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get reply(): string {
    return this.#message.reply ?? "";
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get status(): StreamStatus | undefined {
    const fields = this.#message.headers;
    if (fields === undefined || fields.code === 0) return undefined;
    const { code, description } = fields;
    return {
      code,
      description,
      lastConsumerSeq: numberIn(fields, "Nats-Last-Consumer"),
      lastStreamSeq: numberIn(fields, "Nats-Last-Stream"),
    };
  }
}

function numberIn(fields: MsgHdrs, name: string): number | undefined {
  return fields.has(name) ? Number(fields.get(name)) : undefined;
}

function toHeaders(fields: Readonly<Record<string, string>>): MsgHdrs {
  const result = headers();
  for (const [name, value] of Object.entries(fields)) result.set(name, value);
  return result;
}
