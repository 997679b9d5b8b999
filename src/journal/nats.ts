// The journal on a NATS server with JetStream: opens a connection of its own, finds or creates the stream
// `WAGGLE_<swarm>`, and reads its settings back. What is then done with the stream: stream-journal.ts.

import {
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Status,
} from "@nats-io/transport-node";
import { systemClock } from "../clock.ts";
import { BrokerError, UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { type NatsOptions, openNatsConnection } from "../transport/nats.ts";
import { ended, OpenRequests } from "../transport/open-requests.ts";
import type { RequestOutcome } from "../transport/transport.ts";
import type { Journal } from "./journal.ts";
import { Retry } from "./retry.ts";
import { apiCodes, StreamApi, StreamApiError, type StreamReport } from "./stream-api.ts";
import { StreamJournal } from "./stream-journal.ts";
import {
  checkMaxPayload,
  checkStreamSettings,
  missingStreamCheck,
  type SettingCheck,
  settingsError,
  streamConfigOf,
  streamNameOf,
  type WantedStream,
} from "./stream-settings.ts";
import type { AskOptions, Listening, StreamMessage, StreamStatus, StreamWire } from "./stream-wire.ts";

export interface NatsJournalOptions extends WantedStream {
  readonly connection: NatsOptions;
  /** Whether to create the stream if it is missing: coordinators do, readers do not. */
  readonly create: boolean;
  readonly signal?: AbortSignal;
}

/** @throws UnreachableError; BrokerError where JetStream is off or the stream cannot be created;
 *  WaggleError WAGGLE_JOURNAL_SETTINGS where the stream is missing or not what it must be */
export async function openNatsJournal(options: NatsJournalOptions): Promise<Journal> {
  const { swarm, create } = options;
  const wire = await openWire(options);
  try {
    const api = new StreamApi(wire, streamNameOf(swarm));
    const found = await findStream(wire, api, options);
    if (found === undefined && !create) throw settingsError(swarm, [missingStreamCheck(swarm)]);
    const info = found ?? (await createStream(wire, api, options));
    const wrong = checksOf(wire, info, options).filter(({ ok }) => !ok);
    if (wrong.length > 0) throw settingsError(swarm, wrong);
    const replicas = Number(info.config["num_replicas"]);
    return new StreamJournal({ wire, stream: api.stream, subject: subjectsOf(swarm).journal, replicas });
  } catch (error) {
    await wire.close();
    throw error;
  }
}

/** Every setting of the journal's stream with what is wanted and found, for `waggle doctor`. Changes nothing.
 *  @throws UnreachableError; BrokerError where JetStream is off */
export async function inspectNatsJournal(
  options: Omit<NatsJournalOptions, "create">,
): Promise<readonly SettingCheck[]> {
  const wire = await openWire(options);
  try {
    const info = await findStream(wire, new StreamApi(wire, streamNameOf(options.swarm)), options);
    if (info === undefined) return [missingStreamCheck(options.swarm), checkMaxPayload(wire.maxPayloadBytes)];
    return checksOf(wire, info, options);
  } finally {
    await wire.close();
  }
}

async function openWire({ connection, signal }: { connection: NatsOptions; signal?: AbortSignal }) {
  const options = signal === undefined ? connection : { ...connection, signal };
  return new NatsWire(await openNatsConnection(options), options);
}

function checksOf(wire: NatsWire, { config }: StreamReport, wanted: WantedStream): SettingCheck[] {
  return [...checkStreamSettings(config, wanted), checkMaxPayload(wire.maxPayloadBytes)];
}

/** Undefined when there is none. Waits a while for servers that fail over. */
async function findStream(
  wire: NatsWire,
  api: StreamApi,
  { signal = new AbortController().signal }: { signal?: AbortSignal },
): Promise<StreamReport | undefined> {
  const patienceMs = wire.mayHaveJetStream ? limits.journalOpenMs : 0;
  const retry = new Retry({ clock: systemClock, signal, patienceMs }, (listener) => wire.onStatus(listener));
  for (;;) {
    signal.throwIfAborted();
    try {
      return await api.info();
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      if (error instanceof StreamApiError && error.errCode === apiCodes.streamNotFound) return undefined;
      await retry.pause(isOff(error) || !wire.mayHaveJetStream ? noJetStreamError(error) : error);
    }
  }
}

/** What was created, as the server tells it afterwards. */
async function createStream(
  wire: NatsWire,
  api: StreamApi,
  options: NatsJournalOptions,
): Promise<StreamReport> {
  for (const bytesMax of boundsToTry(options)) {
    const isSmallest = bytesMax === boundsToTry(options).at(-1);
    try {
      await api.create(streamConfigOf({ ...options, bytesMax }));
      break;
    } catch (error) {
      if (!(error instanceof StreamApiError)) throw error;
      // Somebody else created it meanwhile; its settings are checked like any other's.
      if (error.errCode === apiCodes.streamNameInUse) break;
      const mayFitLess = lackOfRoom.has(error.errCode) && !isSmallest;
      if (!mayFitLess) throw createError({ ...options, bytesMax }, error);
    }
  }
  const info = await findStream(wire, api, options);
  if (info === undefined) throw settingsError(options.swarm, [missingStreamCheck(options.swarm)]);
  return info;
}

/** The bound that was asked for; without one, the default, and less where the server has not that much room: a
 *  small disk is no reason to refuse a swarm. */
function boundsToTry({ bytesMax }: WantedStream): readonly number[] {
  return bytesMax === undefined ? [limits.journalBytesMax, ...limits.journalBytesFallbacks] : [bytesMax];
}

const lackOfRoom: ReadonlySet<number> = new Set([
  apiCodes.noStorage,
  apiCodes.noAccountStorage,
  apiCodes.noResources,
]);

function createError({ swarm, bytesMax, replicas }: WantedStream, cause: StreamApiError): BrokerError {
  return new BrokerError(
    `the stream ${streamNameOf(swarm)} of ${bytesMax ?? limits.journalBytesMax} bytes and ${replicas ?? 1} ` +
      `replicas cannot be created. ${cause.message}. If it lacks room or servers, ask for less, or give JetStream ` +
      "more (`max_file_store`)",
    { cause },
  );
}

/** Said by servers that fail over, too: only if it is still said in the end, it is meant. */
function isOff(error: UnreachableError): boolean {
  if (!(error instanceof StreamApiError)) return false;
  return error.errCode === apiCodes.off || error.errCode === apiCodes.offForAccount;
}

function noJetStreamError(cause: unknown): BrokerError {
  return new BrokerError(
    "this NATS server has no JetStream, or not for this account, and the journal needs it; start the server with " +
      "`nats-server -js -sd <folder>`, enable JetStream for the account, or name another server",
    { cause },
  );
}

class NatsWire implements StreamWire {
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string | undefined;
  readonly #onError: (error: Error) => void;
  readonly #answers: Listening;
  readonly #requests = new OpenRequests(systemClock);
  readonly #listeners = new Set<() => void>();
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
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    for (const listener of [...this.#listeners]) listener();
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
    return { code, description, lastConsumerSeq: numberIn(fields, "Nats-Last-Consumer") };
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
