// A stream of the simulated JetStream: its records, its consumers, and the faults of its store. Streams as a whole:
// jetstream.ts.

import type { Clock } from "../../clock.ts";
import { apiCodes } from "../../journal/stream/api.ts";

/** A delivery to a consumer: a record, or a status of the server. */
export interface Delivery {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  readonly status?: DeliveryStatus;
}

interface DeliveryStatus {
  readonly code: number;
  readonly description: string;
  readonly lastConsumerSeq: number;
  /** Last position delivered or skipped as missing. */
  readonly lastStreamSeq: number;
}

interface StoredRecord {
  readonly subject: string;
  readonly bytes: Uint8Array;
}

export interface Publish extends StoredRecord {
  /** Undefined: stored at any position. */
  readonly expectedSeq: number | undefined;
}

export interface RecordQuestion {
  readonly seq?: number;
  readonly next_by_subj?: string;
  readonly last_by_subj?: string;
}

export interface PullRequest {
  readonly batch: number;
  readonly max_bytes: number;
  readonly idle_heartbeat: number;
  /** The requesting node. */
  readonly reader: string;
}

interface Consumer {
  /** The node of the last request for records. */
  reader: string | undefined;
  /** A consumer that is not served hears of no new records. */
  isServed: boolean;
  nextSeq: number;
  delivered: number;
  pull: { send: (delivery: Delivery) => void; records: number; bytes: number } | undefined;
  cancelHeartbeat: () => void;
}

export interface SimStreamOptions {
  readonly config: { readonly name: string; readonly subjects: readonly string[] };
  readonly created: string;
  /** By the server's monotonic clock. */
  readonly createdMs: number;
  /** Called when a record is stored. */
  readonly onChanged: (stream: SimStream) => void;
  /** Called when records are lost. */
  readonly onLoss: () => void;
}

const NO_BYTES = new Uint8Array();
const NS_PER_MS = 1_000_000;
const errors = {
  notFound: { err_code: apiCodes.messageNotFound, description: "no message found" },
  noConsumer: { err_code: 10014, description: "consumer not found" },
};

export class SimStream {
  readonly name: string;
  readonly config: SimStreamOptions["config"];
  readonly #options: SimStreamOptions;
  readonly #records = new Map<number, StoredRecord>();
  /** Ascending positions; some records may be lost. */
  readonly #seqsBySubject = new Map<string, number[]>();
  readonly #consumers = new Map<string, Consumer>();
  readonly #flipped = new Set<number>();
  #lastSeq = 0;
  #bytes = 0;

  constructor(options: SimStreamOptions) {
    this.name = options.config.name;
    this.config = options.config;
    this.#options = options;
  }

  /** By the server's monotonic clock. */
  get createdMs(): number {
    return this.#options.createdMs;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The stored record, whatever an answer says. */
  at(seq: number): Uint8Array | undefined {
    return this.#records.get(seq)?.bytes;
  }

  /** The first position with a subject, whatever an answer says. */
  firstOf(subject: string): number | undefined {
    return this.#seqsOf(subject, 1, this.#lastSeq)[0];
  }

  // --- faults of the store --------------------------------------------------------------------------

  /** A power loss takes the last records. Later records reuse their sequences. */
  loseTail(count: number): void {
    const keptSeq = Math.max(0, this.#lastSeq - count);
    for (let seq = keptSeq + 1; seq <= this.#lastSeq; seq += 1) this.#drop(seq);
    this.#lastSeq = keptSeq;
    for (const [subject, seqs] of this.#seqsBySubject)
      this.#seqsBySubject.set(
        subject,
        seqs.filter((seq) => seq <= keptSeq),
      );
    this.#options.onLoss();
  }

  /** Loses records before the last record. */
  loseMiddle(fromSeq: number, count: number): void {
    for (let seq = fromSeq; seq < fromSeq + count && seq < this.#lastSeq; seq += 1) this.#drop(seq);
    this.#options.onLoss();
  }

  /** A bit of a record flips, and no reader accepts the record: servers keep a checksum per record. */
  flipBit(seq: number): void {
    const record = this.#records.get(seq);
    if (record === undefined) return;
    const bytes = Uint8Array.from(record.bytes); // a copy of a Buffer too, which slice() is not
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    this.#records.set(seq, { ...record, bytes });
    this.#flipped.add(seq);
    this.#options.onLoss();
  }

  /** Whether a bit of a record flipped. */
  isDamaged(seq: number): boolean {
    return this.#flipped.has(seq);
  }

  /** A foreign client writes a record: without permissions any client can. */
  intrude(bytes: Uint8Array): void {
    this.publish({ subject: this.config.subjects[0] ?? "", bytes, expectedSeq: undefined });
  }

  /** Stops deliveries to the consumers of a node; they hear of no new records. */
  stopServing(reader: string): void {
    for (const consumer of this.#consumers.values())
      if (consumer.reader === reader) consumer.isServed = false;
  }

  // --- answers of the server ------------------------------------------------------------------------

  /** @param isKept false: counted and acknowledged, but never found */
  publish({ subject, bytes, expectedSeq }: Publish, { isKept } = { isKept: true }): object {
    if (expectedSeq !== undefined && expectedSeq !== this.#lastSeq) return wrongLastSequence(this.#lastSeq);
    this.#lastSeq += 1;
    if (isKept) {
      this.#records.set(this.#lastSeq, { subject, bytes });
      this.#bytes += bytes.length;
      const seqs = this.#seqsBySubject.get(subject);
      if (seqs === undefined) this.#seqsBySubject.set(subject, [this.#lastSeq]);
      else seqs.push(this.#lastSeq);
    }
    for (const [name, consumer] of this.#consumers) this.#deliver(name, consumer);
    this.#options.onChanged(this);
    return { stream: this.name, seq: this.#lastSeq };
  }

  /** @param staleBy number of newest records unknown to the answering server */
  describe(staleBy = 0): object {
    const lastSeq = this.#lastSeqKnown(staleBy);
    const unknown = [...Array(this.#lastSeq - lastSeq).keys()].filter((at) =>
      this.#records.has(lastSeq + 1 + at),
    );
    const messages = this.#records.size - unknown.length;
    const state = { messages, bytes: this.#bytes, first_seq: Math.min(1, lastSeq), last_seq: lastSeq };
    return { config: this.config, created: this.#options.created, state };
  }

  get(question: RecordQuestion, staleBy = 0): object {
    const seq = this.#seqOf(question, this.#lastSeqKnown(staleBy));
    const record = seq === undefined ? undefined : this.#records.get(seq);
    if (record === undefined) return { error: errors.notFound };
    const { subject, bytes } = record;
    return { message: { seq, subject, data: Buffer.from(bytes).toString("base64") } };
  }

  /** An existing consumer stays unchanged: the request came twice. */
  createConsumer(name: string, fromSeq: number): object {
    if (!this.#consumers.has(name)) {
      const nextSeq = Math.min(Math.max(fromSeq, 1), this.#lastSeq + 1);
      const unread = { reader: undefined, isServed: true, delivered: 0, pull: undefined };
      this.#consumers.set(name, { ...unread, nextSeq, cancelHeartbeat: () => undefined });
    }
    return { stream_name: this.name, name };
  }

  forgetConsumer(name: string): object {
    this.#consumers.get(name)?.cancelHeartbeat();
    return this.#consumers.delete(name) ? { success: true } : { error: errors.noConsumer };
  }

  /** @param lastWord final status of a deleted stream to its readers; a restarting server sends none */
  forgetConsumers(lastStatus?: string): void {
    for (const [name, consumer] of [...this.#consumers]) {
      if (lastStatus !== undefined) consumer.pull?.send(status(409, lastStatus, consumer));
      this.forgetConsumer(name);
    }
  }

  /** @returns whether the consumer exists */
  pull(name: string, request: PullRequest, send: (delivery: Delivery) => void, clock: Clock): boolean {
    const consumer = this.#consumers.get(name);
    if (consumer === undefined) return false;
    consumer.cancelHeartbeat();
    consumer.reader = request.reader;
    consumer.pull = { send, records: request.batch, bytes: request.max_bytes };
    const sendHeartbeat = () => {
      consumer.pull?.send(status(100, "Idle Heartbeat", consumer));
      consumer.cancelHeartbeat = clock.after(request.idle_heartbeat / NS_PER_MS, sendHeartbeat);
    };
    consumer.cancelHeartbeat = clock.after(request.idle_heartbeat / NS_PER_MS, sendHeartbeat);
    this.#deliver(name, consumer);
    return true;
  }

  #deliver(name: string, consumer: Consumer): void {
    if (!consumer.isServed) return;
    for (; consumer.pull !== undefined && consumer.nextSeq <= this.#lastSeq; consumer.nextSeq += 1) {
      const record = this.#records.get(consumer.nextSeq);
      if (record === undefined) continue; // a gap is passed over in silence
      const { pull } = consumer;
      if (record.bytes.length > pull.bytes) {
        this.#endPull(consumer, status(409, "Message Size Exceeds MaxBytes", consumer));
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

  #endPull(consumer: Consumer, lastStatus: Delivery | undefined): void {
    const { pull } = consumer;
    consumer.pull = undefined;
    consumer.cancelHeartbeat();
    if (lastStatus !== undefined) pull?.send(lastStatus);
  }

  #drop(seq: number): void {
    this.#bytes -= this.#records.get(seq)?.bytes.length ?? 0;
    this.#records.delete(seq);
  }

  #lastSeqKnown(staleBy: number): number {
    return Math.max(0, this.#lastSeq - staleBy);
  }

  #seqOf({ seq = 1, next_by_subj, last_by_subj }: RecordQuestion, lastSeq: number): number | undefined {
    if (last_by_subj !== undefined) return this.#seqsOf(last_by_subj, 1, lastSeq).at(-1);
    if (next_by_subj !== undefined) return this.#seqsOf(next_by_subj, seq, lastSeq)[0];
    return seq <= lastSeq ? seq : undefined;
  }

  #seqsOf(subject: string, fromSeq: number, toSeq: number): number[] {
    const seqs = this.#seqsBySubject.get(subject) ?? [];
    return seqs.filter((seq) => seq >= fromSeq && seq <= toSeq && this.#records.has(seq));
  }
}

export function wrongLastSequence(lastSeq: number): object {
  return {
    error: { err_code: apiCodes.wrongLastSequence, description: `wrong last sequence: ${lastSeq}` },
  };
}

export function status(
  code: number,
  description: string,
  { delivered, nextSeq }: Pick<Consumer, "delivered" | "nextSeq">,
): Delivery {
  const line = { code, description, lastConsumerSeq: delivered, lastStreamSeq: nextSeq - 1 };
  return { subject: "", reply: "", data: NO_BYTES, status: line };
}
