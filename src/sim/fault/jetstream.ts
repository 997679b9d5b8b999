// A NATS server's JetStream as far as Waggle speaks to it: streams, their records, pull consumers, and the answers a
// real server gives, the misleading ones too. What the production journal (journal/stream/stream-journal.ts) meets in a
// simulation. Not here: the way to it (jetstream-wire.ts), and when what goes wrong (the caller of `StreamFates`).
//
// What it says and how follows what was seen of nats-server 2.9.10, 2.10.27 and 2.15.1.

import type { Clock } from "../../clock.ts";
import { apiCodes } from "../../journal/stream/api.ts";

/** What becomes of a message that is to be stored. */
export type PublishFate =
  | "store"
  /** Stored, and the acknowledgement is lost. */
  | "store-unheard"
  /** Neither stored nor answered. */
  | "drop"
  /** Refused as if another record had taken the place, which no majority ever saw. */
  | "refuse-uncommitted"
  /** `{"seq":0,"duplicate":true}` of what was never stored: 2.10.27 can say so. */
  | "false-duplicate"
  /** Counted and acknowledged, and not found for good: 2.9.10 behind a bit that flipped in its newest block. */
  | "forget"
  | "full"
  /** JetStream is not enabled: said while servers fail over. */
  | "off"
  | "nobody"
  /** Held so long by the server, and handled then; gone where the server meanwhile loses what it had stored. */
  | { readonly lateMs: number };

/** What becomes of a question. */
export type QuestionFate =
  | "answer"
  | "drop"
  | "off"
  | "nobody"
  /** What is asked for is not found, though it is there. */
  | "not-found"
  /** Answered by who does not know the newest records yet, so many of them. */
  | { readonly staleBy: number };

export interface StreamFates {
  onPublish(stream: string): PublishFate;
  onQuestion(stream: string): QuestionFate;
}

/** An answer, or none. `nobody`: no responders. */
export type Reply = (answer: object | "nobody") => void;

type Headers = Readonly<Record<string, string>>;

/** How it was when a message left. */
interface Sent {
  /** Of the stream that it would change. */
  readonly tailLosses?: number | undefined;
}

interface StreamWord {
  readonly code: number;
  readonly description: string;
  readonly lastConsumerSeq: number;
  /** Delivered, or passed over as not there. */
  readonly lastStreamSeq: number;
}

/** What a consumer is sent: a record, or a word of the server. */
export interface Delivery {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  readonly status?: StreamWord;
}

interface StoredRecord {
  readonly subject: string;
  readonly bytes: Uint8Array;
}

interface PullRequest {
  readonly batch: number;
  readonly max_bytes: number;
  readonly idle_heartbeat: number;
}

interface Consumer {
  /** Who last asked for records. */
  reader: string | undefined;
  /** One that is not is told that there is nothing new. */
  isServed: boolean;
  nextSeq: number;
  delivered: number;
  pull: { send: (delivery: Delivery) => void; records: number; bytes: number } | undefined;
  cancelHeartbeat: () => void;
}

const NO_BYTES = new Uint8Array();
const NS_PER_MS = 1_000_000;
const PURGE = "$JS.API.STREAM.PURGE.";
const apiErrors = {
  wrongLastSequence: { err_code: 10071, description: "wrong last sequence" },
  storeFailed: { err_code: 10077, description: "maximum bytes exceeded" },
  off: { err_code: apiCodes.off, description: "JetStream system temporarily unavailable" },
  notFound: { err_code: apiCodes.messageNotFound, description: "no message found" },
  noStream: { err_code: apiCodes.streamNotFound, description: "stream not found" },
  noConsumer: { err_code: 10014, description: "consumer not found" },
  badRequest: { err_code: 10003, description: "bad request" },
} as const;

/** All streams of one server, or of one cluster that behaves like one. */
export class SimJetStream {
  readonly #clock: Clock;
  readonly #fates: StreamFates;
  readonly #streams = new Map<string, SimStream>();

  constructor(clock: Clock, fates: StreamFates) {
    this.#clock = clock;
    this.#fates = fates;
  }

  stream(name: string): SimStream | undefined {
    return this.#streams.get(name);
  }

  /** The process was started again: who reads must ask anew. What the disks hold stays. */
  restart(): void {
    for (const stream of this.#streams.values()) stream.forgetConsumers();
  }

  /** How often the stream lost its end that a message would change; undefined where it would change none. */
  tailLossesOf(subject: string): number | undefined {
    return this.#changedBy(subject)?.tailLosses;
  }

  /** A message to a stream's subject, or a question to its API.
   *  @param sent when it left. What would change a stream is gone where that lost its end since: a copy of what was
   *  refused would find that very place free, and a late purge take what stands there now */
  handle(subject: string, data: Uint8Array, headers: Headers, reply: Reply, sent: Sent = {}): void {
    const changed = this.#changedBy(subject);
    if ((sent.tailLosses ?? changed?.tailLosses) !== changed?.tailLosses) return;
    if (subject.startsWith("$JS.API.")) return this.#question(subject.split(".").slice(2), data, reply);
    const stream = this.#streamOf(subject);
    if (stream === undefined) return reply("nobody");
    const expected = headers["Nats-Expected-Last-Sequence"];
    const expectedSeq = expected === undefined ? undefined : Number(expected);
    this.#publish(stream, { subject, bytes: data, expectedSeq }, reply);
  }

  /** A consumer is asked for records, by `reader`: `$JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>`. */
  pull(subject: string, data: Uint8Array, reader: string, send: (delivery: Delivery) => void): void {
    const [stream = "", consumer = ""] = subject.split(".").slice(5);
    const request = { ...(parse(data) as PullRequest), reader };
    const isThere = this.#streams.get(stream)?.pull(consumer, request, send, this.#clock) ?? false;
    if (!isThere) send(word(503, "", { delivered: 0, nextSeq: 1 }));
  }

  #changedBy(subject: string): SimStream | undefined {
    return subject.startsWith(PURGE)
      ? this.#streams.get(subject.slice(PURGE.length))
      : this.#streamOf(subject);
  }

  #streamOf(subject: string): SimStream | undefined {
    return [...this.#streams.values()].find((each) => each.takes(subject));
  }

  #publish(stream: SimStream, message: Publish, reply: Reply): void {
    const fate = this.#fates.onPublish(stream.name);
    if (typeof fate === "object") {
      const { tailLosses } = stream;
      this.#clock.after(fate.lateMs, () => {
        if (stream.tailLosses === tailLosses) reply(stream.publish(message));
      });
      return;
    }
    switch (fate) {
      case "store":
        return reply(stream.publish(message));
      case "store-unheard":
        stream.publish(message);
        return;
      case "forget":
        return reply(stream.publish(message, { isKept: false }));
      case "drop":
        return;
      case "refuse-uncommitted": {
        const description = `wrong last sequence: ${stream.lastSeq + 1}`;
        return reply({ error: { ...apiErrors.wrongLastSequence, description } });
      }
      case "false-duplicate":
        return reply({ stream: stream.name, seq: 0, duplicate: true });
      case "full":
        return reply({ error: apiErrors.storeFailed });
      case "off":
        return reply({ error: apiErrors.off });
      case "nobody":
        return reply("nobody");
    }
  }

  #question([kind = "", verb = "", ...rest]: readonly string[], data: Uint8Array, reply: Reply): void {
    const name = kind === "STREAM" && verb === "MSG" ? (rest[1] ?? "") : (rest[0] ?? "");
    const fate = this.#fates.onQuestion(name);
    if (fate === "drop") return;
    if (fate === "nobody") return reply("nobody");
    if (fate === "off") return reply({ error: apiErrors.off });
    const staleBy = typeof fate === "object" ? fate.staleBy : 0;
    const body = parse(data);
    if (kind === "STREAM" && verb === "CREATE") return reply(this.#create(name, body));
    const stream = this.#streams.get(name);
    if (stream === undefined) return reply({ error: apiErrors.noStream });
    switch (`${kind}.${verb}`) {
      case "STREAM.INFO":
        return reply(stream.describe(staleBy));
      case "STREAM.MSG":
        if (fate === "not-found") return reply({ error: apiErrors.notFound });
        return reply(stream.get(body as RecordQuestion, staleBy));
      case "STREAM.PURGE":
        return reply(stream.purge((body as { seq?: number }).seq));
      case "CONSUMER.CREATE": {
        const { opt_start_seq } = (body as { config: { opt_start_seq: number } }).config;
        return reply(stream.createConsumer(rest[1] ?? "", opt_start_seq));
      }
      case "CONSUMER.DELETE":
        return reply(stream.forgetConsumer(rest[1] ?? ""));
      default:
        return reply({ error: apiErrors.badRequest });
    }
  }

  #create(name: string, config: object): object {
    if (this.#streams.has(name))
      return { error: { err_code: apiCodes.streamNameInUse, description: "stream name already in use" } };
    const stream = new SimStream(name, config, new Date(this.#clock.now()).toISOString());
    this.#streams.set(name, stream);
    return stream.describe(0);
  }
}

interface Publish extends StoredRecord {
  readonly expectedSeq: number | undefined;
}

interface RecordQuestion {
  readonly seq: number;
  readonly next_by_subj?: string;
}

/** One stream and those who read it. */
export class SimStream {
  readonly name: string;
  /** Told of what was stored, and of what was purged. */
  onChanged: (stream: SimStream) => void = () => undefined;
  #config: { readonly max_bytes?: number };
  readonly #subjects: readonly string[];
  readonly #created: string;
  readonly #records = new Map<number, StoredRecord>();
  readonly #consumers = new Map<string, Consumer>();
  #firstSeq = 1;
  #lastSeq = 0;
  #bytes = 0;
  #tailLosses = 0;

  constructor(name: string, config: object, created: string) {
    this.name = name;
    this.#config = config;
    this.#subjects = (config as { subjects: string[] }).subjects;
    this.#created = created;
  }

  get firstSeq(): number {
    return this.#firstSeq;
  }

  /** Of its bound, in [0, 1]. */
  get fullShare(): number {
    const { bytes, bytesMax } = this.usage;
    return bytes / bytesMax;
  }

  get usage(): { readonly bytes: number; readonly bytesMax: number } {
    return { bytes: this.#bytes, bytesMax: this.#config.max_bytes ?? Number.POSITIVE_INFINITY };
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** How often it lost its end. */
  get tailLosses(): number {
    return this.#tailLosses;
  }

  /** What stands at a position, whatever anybody is told. */
  at(seq: number): Uint8Array | undefined {
    return this.#records.get(seq)?.bytes;
  }

  /** What stands there under a subject, in order. */
  under(subject: string): Uint8Array[] {
    const records = [...this.#records.values()].filter((record) => record.subject === subject);
    return records.map(({ bytes }) => bytes);
  }

  takes(subject: string): boolean {
    return this.#subjects.some(
      (pattern) => pattern === subject || (pattern.endsWith(">") && subject.startsWith(pattern.slice(0, -1))),
    );
  }

  // --- what happens to disks ------------------------------------------------------------------------

  /** The last records are lost, as after a power failure. */
  loseTail(count: number): void {
    const keptSeq = Math.max(this.#firstSeq - 1, this.#lastSeq - count);
    for (let seq = keptSeq + 1; seq <= this.#lastSeq; seq += 1) this.#drop(seq);
    this.#lastSeq = keptSeq;
    this.#tailLosses += 1;
  }

  /** Records within are lost, and the stream goes on behind them. */
  loseMiddle(fromSeq: number, count: number): void {
    for (let seq = fromSeq; seq < fromSeq + count && seq < this.#lastSeq; seq += 1) this.#drop(seq);
  }

  /** A bit of a record flips. */
  rot(seq: number): void {
    const record = this.#records.get(seq);
    if (record === undefined) return;
    const bytes = record.bytes.slice();
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    this.#records.set(seq, { ...record, bytes });
  }

  /** Who reads is served no longer, and goes on being told that there is nothing new. */
  stopServing(reader: string): void {
    for (const consumer of this.#consumers.values())
      if (consumer.reader === reader) consumer.isServed = false;
  }

  /** Somebody else's record: any client of a server without permissions can do that. */
  intrude(bytes: Uint8Array): void {
    this.publish({ subject: this.#subjects[0] ?? "", bytes, expectedSeq: undefined });
  }

  /** An operator bounds it anew: what it holds stays. */
  bound(bytesMax: number): void {
    this.#config = { ...this.#config, max_bytes: Math.max(bytesMax, this.#bytes) };
  }

  // --- what the server does -------------------------------------------------------------------------

  publish({ subject, bytes, expectedSeq }: Publish, { isKept } = { isKept: true }): object {
    if (expectedSeq !== undefined && expectedSeq !== this.#lastSeq) {
      const description = `wrong last sequence: ${this.#lastSeq}`;
      return { error: { ...apiErrors.wrongLastSequence, description } };
    }
    const { max_bytes = -1 } = this.#config;
    if (max_bytes > 0 && this.#bytes + bytes.length > max_bytes) return { error: apiErrors.storeFailed };
    this.#lastSeq += 1;
    if (isKept) {
      this.#records.set(this.#lastSeq, { subject, bytes: bytes.slice() });
      this.#bytes += bytes.length;
    }
    for (const [name, consumer] of this.#consumers) this.#deliver(name, consumer);
    this.onChanged(this);
    return { stream: this.name, seq: this.#lastSeq };
  }

  describe(staleBy: number): object {
    const lastSeq = Math.max(this.#firstSeq - 1, this.#lastSeq - staleBy);
    const span = lastSeq - this.#firstSeq + 1;
    const messages = staleBy === 0 ? this.#records.size : span;
    const state = {
      messages,
      num_deleted: span - messages,
      bytes: this.#bytes,
      first_seq: lastSeq === 0 ? 0 : this.#firstSeq,
      last_seq: lastSeq,
    };
    return { config: this.#config, created: this.#created, state };
  }

  get(question: RecordQuestion, staleBy: number): object {
    const seq = this.#placeOf(question);
    const record = seq > this.#lastSeq - staleBy ? undefined : this.#records.get(seq);
    if (record === undefined) return { error: apiErrors.notFound };
    const { subject, bytes } = record;
    return { message: { seq, subject, data: Buffer.from(bytes).toString("base64") } };
  }

  /** @param belowSeq undefined: all of them */
  purge(belowSeq = this.#lastSeq + 1): object {
    let purged = 0;
    for (; this.#firstSeq < Math.min(belowSeq, this.#lastSeq + 1); this.#firstSeq += 1) {
      if (this.#records.has(this.#firstSeq)) purged += 1;
      this.#drop(this.#firstSeq);
    }
    this.onChanged(this);
    return { success: true, purged };
  }

  /** The same one again, by a request that comes twice, goes on as it is. */
  createConsumer(name: string, fromSeq: number): object {
    if (this.#consumers.has(name)) return { stream_name: this.name, name };
    const nextSeq = Math.min(Math.max(fromSeq, this.#firstSeq), this.#lastSeq + 1);
    const unread = { reader: undefined, isServed: true, delivered: 0, pull: undefined };
    this.#consumers.set(name, { ...unread, nextSeq, cancelHeartbeat: () => undefined });
    return { stream_name: this.name, name };
  }

  forgetConsumer(name: string): object {
    this.#consumers.get(name)?.cancelHeartbeat();
    return this.#consumers.delete(name) ? { success: true } : { error: apiErrors.noConsumer };
  }

  forgetConsumers(): void {
    for (const name of [...this.#consumers.keys()]) this.forgetConsumer(name);
  }

  /** @returns whether there is such a consumer */
  pull(
    name: string,
    request: PullRequest & { readonly reader: string },
    send: (delivery: Delivery) => void,
    clock: Clock,
  ): boolean {
    const consumer = this.#consumers.get(name);
    if (consumer === undefined) return false;
    consumer.cancelHeartbeat();
    consumer.reader = request.reader;
    consumer.pull = { send, records: request.batch, bytes: request.max_bytes };
    const beat = () => {
      consumer.pull?.send(word(100, "Idle Heartbeat", consumer));
      consumer.cancelHeartbeat = clock.after(request.idle_heartbeat / NS_PER_MS, beat);
    };
    consumer.cancelHeartbeat = clock.after(request.idle_heartbeat / NS_PER_MS, beat);
    this.#deliver(name, consumer);
    return true;
  }

  #deliver(name: string, consumer: Consumer): void {
    if (!consumer.isServed) return;
    for (; consumer.pull !== undefined && consumer.nextSeq <= this.#lastSeq; consumer.nextSeq += 1) {
      const record = this.#records.get(consumer.nextSeq);
      if (record === undefined) continue; // a hole is passed over without a word
      const { pull } = consumer;
      if (record.bytes.length > pull.bytes) {
        this.#endPull(consumer, word(409, "Message Size Exceeds MaxBytes", consumer));
        return;
      }
      consumer.delivered += 1;
      pull.records -= 1;
      pull.bytes -= record.bytes.length;
      const reply = `$JS.ACK.${this.name}.${name}.1.${consumer.nextSeq}.${consumer.delivered}.0.0`;
      pull.send({ subject: record.subject, reply, data: record.bytes });
      if (pull.records === 0) this.#endPull(consumer, undefined);
    }
  }

  #endPull(consumer: Consumer, lastWord: Delivery | undefined): void {
    const { pull } = consumer;
    consumer.pull = undefined;
    consumer.cancelHeartbeat();
    if (lastWord !== undefined) pull?.send(lastWord);
  }

  #drop(seq: number): void {
    this.#bytes -= this.#records.get(seq)?.bytes.length ?? 0;
    this.#records.delete(seq);
  }

  /** 0 where there is none. */
  #placeOf({ seq, next_by_subj }: RecordQuestion): number {
    return next_by_subj === undefined ? seq : this.#nextOf(seq, next_by_subj);
  }

  #nextOf(fromSeq: number, subject: string): number {
    for (const [seq, record] of this.#records) if (seq >= fromSeq && record.subject === subject) return seq;
    return 0;
  }
}

function word(
  code: number,
  description: string,
  { delivered, nextSeq }: Pick<Consumer, "delivered" | "nextSeq">,
): Delivery {
  const status = { code, description, lastConsumerSeq: delivered, lastStreamSeq: nextSeq - 1 };
  return { subject: "", reply: "", data: NO_BYTES, status };
}

function parse(data: Uint8Array): object {
  return data.length === 0 ? {} : JSON.parse(new TextDecoder().decode(data));
}
