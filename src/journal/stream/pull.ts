// The use of one consumer: requests records of a stream, and buffers the records until the reader takes them. The pull
// ends, without a reason, at the first sign of a missing record; reader.ts then creates a new consumer.
//
// Signs of a missing record:
//   - a heartbeat counts more records than arrived, or passed over missing records;
//   - heartbeats fail to arrive, or arrive while a record known to be in the stream does not;
//   - a request expires without any record;
//   - the server reports that the consumer is gone, or the connection breaks.
// The reader notices skipped records by their positions.
//
// The stream's leader answers questions, but any server with a replica of the stream may run a consumer. A replica that
// lags sends heartbeats and no records, so heartbeats alone do not keep a consumer in use.

import type { Clock, Random } from "../../clock.ts";
import { limits } from "../../limits.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import { Bell } from "../bell.ts";
import type { SegmentRecord } from "../journal.ts";
import type { StreamApi } from "./api.ts";
import type { Listening, StreamMessage, StreamStatus, StreamWire } from "./wire.ts";

export interface StreamAccess {
  readonly wire: StreamWire;
  readonly api: StreamApi;
  /** Number of the segment, for errors. */
  readonly segment: number;
  readonly stream: string;
  readonly subjects: Subjects;
  readonly clock: Clock;
  /** Names consumers. */
  readonly random: Random;
}

export interface PullStart {
  /** The consumer's first record. */
  readonly fromSeq: number;
  /** The first record not read before; `fromSeq` or later. */
  readonly nextSeq: number;
  /** The last record known to be in the stream; 0 if unknown. */
  readonly knownTo: number;
  /** As `ReplayOptions.aheadBytes`. */
  readonly aheadBytes?: number | undefined;
}

/** A record, or the segment's seal. */
export interface PulledRecord extends SegmentRecord {
  readonly isSeal: boolean;
}

export class StreamPull {
  readonly #subject: string;
  readonly #sealSubject: string;
  readonly #access: StreamAccess;
  readonly #name: string;
  readonly #arrivals = new Bell();
  readonly #listening: Listening;
  readonly #stopStatus: () => void;
  #cancelHeartbeatTimer: () => void = () => undefined;
  #records: PulledRecord[] = [];
  #heldBytes = 0;
  #consumerSeq = 0;
  /** The next expected record; all earlier records arrived. */
  #nextSeq: number;
  readonly #knownTo: number;
  #isRequested = false;
  #awaited = 0;
  #requestBytes: number;
  /** The last request brought a record. */
  #hasBrought = false;
  #missedHeartbeats = 0;
  #isOver = false;

  /** @throws UnreachableError, StreamApiError */
  static async begin(access: StreamAccess, start: PullStart): Promise<StreamPull> {
    const pull = new StreamPull(access, start);
    try {
      await access.api.createConsumer(access.stream, pull.#name, start.fromSeq);
    } catch (error) {
      pull.end();
      throw error;
    }
    pull.#request();
    return pull;
  }

  private constructor(access: StreamAccess, { nextSeq, knownTo, aheadBytes }: PullStart) {
    this.#access = access;
    this.#subject = access.subjects.segment(access.segment);
    this.#sealSubject = access.subjects.segmentSealed(access.segment);
    this.#nextSeq = nextSeq;
    this.#knownTo = knownTo;
    this.#requestBytes = aheadBytes ?? largestRequest(access.wire);
    this.#name = `waggle-${access.random.id(16)}`;
    this.#listening = access.wire.listen((message) => this.#receive(message));
    this.#stopStatus = access.wire.onStatus(() => this.#finish());
    this.#awaitHeartbeat();
  }

  /** The next record; undefined after the consumer's end or if `signal` aborted. */
  async next(signal: AbortSignal): Promise<PulledRecord | undefined> {
    while (!signal.aborted) {
      const record = this.#records.shift();
      if (record !== undefined) {
        this.#heldBytes -= record.bytes.length;
        this.#request();
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
    this.#access.api.forgetConsumer(this.#access.stream, this.#name);
  }

  /** One request at a time, and only while at most half of a request's bytes are buffered. */
  #request(): void {
    const bytes = this.#requestBytes;
    if (this.#isOver || this.#isRequested || this.#heldBytes > bytes / 2) return;
    this.#isRequested = true;
    this.#hasBrought = false;
    this.#missedHeartbeats = 0;
    this.#awaited = limits.journalPullRecords;
    const { api, stream } = this.#access;
    api.pull(stream, this.#name, { inbox: this.#listening.inbox, records: this.#awaited, bytes });
  }

  #receive(message: StreamMessage): void {
    if (this.#isOver) return;
    if (message.subject.startsWith(this.#subject)) this.#receiveRecord(message);
    else if (message.status !== undefined) this.#receiveStatus(message.status);
    this.#arrivals.ring();
  }

  #receiveRecord({ subject, reply, data }: StreamMessage): void {
    const numbers = parseDelivery(reply);
    if (numbers === undefined) return this.#finish();
    this.#consumerSeq = numbers.consumerSeq;
    this.#hasBrought = true;
    this.#missedHeartbeats = 0;
    this.#nextSeq = Math.max(this.#nextSeq, numbers.seq + 1);
    const bytes = new Uint8Array(data); // a view would keep the whole network buffer in memory
    this.#records.push({ position: numbers.seq, bytes, isSeal: subject === this.#sealSubject });
    this.#heldBytes += data.length;
    this.#awaited -= 1;
    if (this.#awaited === 0) this.#requestAgain();
  }

  #receiveStatus({ code, description, lastConsumerSeq = 0, lastStreamSeq = 0 }: StreamStatus): void {
    if (code === 100 && lastConsumerSeq <= this.#consumerSeq && lastStreamSeq < this.#nextSeq) {
      if (this.#nextSeq > this.#knownTo) this.#missedHeartbeats = 0;
      return;
    }
    const isTooLarge = /MaxBytes/i.test(description);
    if (isTooLarge && !this.#hasBrought) this.#requestBytes = largestRequest(this.#access.wire);
    const isExpired = code === 408 && this.#hasBrought;
    if (isExpired || isTooLarge || /Batch Completed/i.test(description)) this.#requestAgain();
    else this.#finish();
  }

  #requestAgain(): void {
    this.#isRequested = false;
    this.#request();
  }

  /** Counts heartbeats and not time: after a stall of the event loop, messages are read before the next count. */
  #noteMissedHeartbeat(): void {
    if (this.#isRequested) this.#missedHeartbeats += 1;
    if (this.#missedHeartbeats > limits.journalHeartbeatsMissedMax) this.#finish();
    else this.#awaitHeartbeat();
  }

  #awaitHeartbeat(): void {
    this.#cancelHeartbeatTimer = this.#access.clock.after(limits.journalHeartbeatMs, () =>
      this.#noteMissedHeartbeat(),
    );
  }

  #finish(): void {
    this.#isOver = true;
    this.#cancelHeartbeatTimer();
    this.#stopStatus();
    this.#arrivals.ring();
  }
}

/** Any record fits. */
function largestRequest(wire: StreamWire): number {
  return Math.max(limits.journalPullBytes, 2 * wire.maxPayloadBytes);
}

/** `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<time>.<pending>`; the newer form has domain and
 *  account before the stream, and possibly more at the end. */
function parseDelivery(reply: string): { seq: number; consumerSeq: number } | undefined {
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 5 : 7;
  const seq = Number(tokens[at]);
  const consumerSeq = Number(tokens[at + 1]);
  return Number.isSafeInteger(seq) && Number.isSafeInteger(consumerSeq) ? { seq, consumerSeq } : undefined;
}
