// One consumer's life: asks a stream for records and holds those that came until they are taken. Ends, without
// saying why, at the first sign that something may be missing; reader.ts then begins another one.
//
// Signs: a hole in the consumer's own numbering, a heartbeat that knows of more than came, or that the server has
// passed over records it does not find, heartbeats that stay away, the server saying that the consumer is gone, a
// connection that broke.

import type { Clock, Random } from "../../clock.ts";
import { limits } from "../../limits.ts";
import { Bell } from "../bell.ts";
import type { JournalRecord } from "../journal.ts";
import type { StreamApi } from "./api.ts";
import type { Listening, StreamMessage, StreamStatus, StreamWire } from "./wire.ts";

export interface StreamAccess {
  readonly wire: StreamWire;
  readonly api: StreamApi;
  /** Under which the records are stored. */
  readonly subject: string;
  readonly clock: Clock;
  /** Names consumers. */
  readonly random: Random;
}

export interface PullPlace {
  /** Where the consumer begins. */
  readonly fromSeq: number;
  /** The first record that was not read before; `fromSeq` or behind it. */
  readonly nextSeq: number;
  /** As of `ReplayOptions`. */
  readonly aheadBytes?: number | undefined;
}

export class StreamPull {
  readonly #wire: StreamWire;
  readonly #api: StreamApi;
  readonly #subject: string;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #arrivals = new Bell();
  readonly #listening: Listening;
  readonly #stopStatus: () => void;
  #cancelBeat: () => void = () => undefined;
  #records: JournalRecord[] = [];
  #heldBytes = 0;
  #consumerSeq = 0;
  /** The record that is to come next; none is missing before it. */
  #nextSeq: number;
  #isAsking = false;
  #awaited = 0;
  #askedBytes: number;
  /** Whether the last question brought a record. */
  #hasBrought = false;
  #silentBeats = 0;
  #isOver = false;

  /** @throws UnreachableError, StreamApiError */
  static async begin(access: StreamAccess, place: PullPlace): Promise<StreamPull> {
    const pull = new StreamPull(access, place);
    try {
      await access.api.createConsumer(pull.#name, place.fromSeq);
    } catch (error) {
      pull.end();
      throw error;
    }
    pull.#ask();
    return pull;
  }

  private constructor(access: StreamAccess, { nextSeq, aheadBytes }: PullPlace) {
    const { wire, api, subject, clock, random } = access;
    this.#nextSeq = nextSeq;
    this.#askedBytes = aheadBytes ?? largestPull(wire);
    this.#clock = clock;
    this.#name = `waggle-${random.id(16)}`;
    this.#wire = wire;
    this.#api = api;
    this.#subject = subject;
    this.#listening = wire.listen((message) => this.#receive(message));
    this.#stopStatus = wire.onStatus(() => this.#finish());
    this.#awaitBeat();
  }

  /** The next record, or undefined when this life is over or `signal` aborted. */
  async next(signal: AbortSignal): Promise<JournalRecord | undefined> {
    while (!signal.aborted) {
      const record = this.#records.shift();
      if (record !== undefined) {
        this.#heldBytes -= record.bytes.length;
        this.#ask();
        return record;
      }
      if (this.#isOver) return undefined;
      await this.#arrivals.wait(signal);
    }
    return undefined;
  }

  /** Idempotent. */
  end(): void {
    this.#finish();
    this.#listening.stop();
    this.#api.forgetConsumer(this.#name);
  }

  /** One question at a time, and only while what came is being taken. */
  #ask(): void {
    const bytes = this.#askedBytes;
    if (this.#isOver || this.#isAsking || this.#heldBytes > bytes / 2) return;
    this.#isAsking = true;
    this.#hasBrought = false;
    this.#silentBeats = 0;
    this.#awaited = limits.journalPullRecords;
    this.#api.pull(this.#name, this.#listening.inbox, { records: this.#awaited, bytes });
  }

  #receive(message: StreamMessage): void {
    if (this.#isOver) return;
    this.#silentBeats = 0;
    if (message.subject === this.#subject) this.#receiveRecord(message);
    else if (message.status !== undefined) this.#receiveStatus(message.status);
    this.#arrivals.ring();
  }

  #receiveRecord({ reply, data }: StreamMessage): void {
    const numbers = parseDelivery(reply);
    if (numbers?.consumerSeq !== this.#consumerSeq + 1) return this.#finish();
    this.#consumerSeq = numbers.consumerSeq;
    this.#hasBrought = true;
    this.#nextSeq = Math.max(this.#nextSeq, numbers.seq + 1);
    const bytes = new Uint8Array(data); // a Buffer's slice is a view, and holds all that arrived along with it
    this.#records.push({ seq: numbers.seq, bytes });
    this.#heldBytes += data.length;
    this.#awaited -= 1;
    if (this.#awaited === 0) this.#askAgain();
  }

  #receiveStatus({ code, description, lastConsumerSeq = 0, lastStreamSeq = 0 }: StreamStatus): void {
    const isHeartbeat = code === 100;
    if (isHeartbeat && lastConsumerSeq <= this.#consumerSeq && lastStreamSeq < this.#nextSeq) return;
    const isTooLarge = /MaxBytes/i.test(description);
    if (isTooLarge && !this.#hasBrought) this.#askedBytes = largestPull(this.#wire);
    if (code === 404 || code === 408 || isTooLarge || /Batch Completed/i.test(description)) this.#askAgain();
    else this.#finish();
  }

  #askAgain(): void {
    this.#isAsking = false;
    this.#ask();
  }

  /** Counts beats and not time: after a stall of our own loop what came is read before the next beat. */
  #beat(): void {
    if (this.#isAsking) this.#silentBeats += 1;
    if (this.#silentBeats > limits.journalHeartbeatsMissedMax) this.#finish();
    else this.#awaitBeat();
  }

  #awaitBeat(): void {
    this.#cancelBeat = this.#clock.after(limits.journalHeartbeatMs, () => this.#beat());
  }

  #finish(): void {
    this.#isOver = true;
    this.#cancelBeat();
    this.#stopStatus();
    this.#arrivals.ring();
  }
}

/** Any record fits. */
function largestPull(wire: StreamWire): number {
  return Math.max(limits.journalPullBytes, 2 * wire.maxPayloadBytes);
}

/** `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<time>.<pending>`; from a later form on with
 *  domain and account before the stream, and possibly more at the end. */
function parseDelivery(reply: string): { seq: number; consumerSeq: number } | undefined {
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 5 : 7;
  const seq = Number(tokens[at]);
  const consumerSeq = Number(tokens[at + 1]);
  return Number.isSafeInteger(seq) && Number.isSafeInteger(consumerSeq) ? { seq, consumerSeq } : undefined;
}
