// A stream behind a wire, in memory, whose server can be made to lose, withhold and forget: what real servers
// do too rarely to be tested. Answers only what a journal asks.

import type { Listening, StreamMessage, StreamStatus, StreamWire } from "../../src/journal/stream/wire.ts";
import { ended } from "../../src/transport/open-requests.ts";
import type { RequestOutcome } from "../../src/transport/transport.ts";

interface Consumer {
  nextSeq: number;
  consumerSeq: number;
  inbox: string | undefined;
  wanted: number;
  wantedBytes: number;
}

interface PullRequest {
  readonly batch: number;
  readonly max_bytes: number;
}

export const FAKE_SUBJECT = "journal";

export class FakeStream implements StreamWire {
  readonly maxPayloadBytes = 1024 * 1024;
  status: StreamWire["status"] = "connected";
  /** By sequence. Deleting one makes a hole. */
  readonly records = new Map<number, Uint8Array>();
  firstSeq = 1;
  lastSeq = 0;
  /** By how much the server counts more, where it judges appends, than it describes. */
  countsMoreBy = 0;
  /** Below which sequence each purge was to remove. */
  readonly purges: number[] = [];
  /** Undefined: there is no such stream. */
  created: string | undefined = "2026-11-21T20:00:00Z";
  /** How consumers were created: by which sequence each began. */
  readonly begun: number[] = [];
  /** Deliveries that are lost on the way, by sequence; each is lost once. */
  readonly lost = new Set<number>();
  /** Records that the server has and cannot read. */
  readonly unreadable = new Set<number>();
  /** Records sent to consumers so far. */
  delivered = 0;
  /** While true the server says nothing to pulls, not even heartbeats. */
  isMute = false;
  /** Prefix of delivery subjects; later servers may add domain and account. */
  ackPrefix = "$JS.ACK.STREAM";
  readonly #consumers = new Map<string, Consumer>();
  readonly #inboxes = new Map<string, (message: StreamMessage) => void>();
  readonly #listeners = new Set<() => void>();
  #inboxCount = 0;

  put(bytes: Uint8Array): void {
    this.lastSeq += 1;
    this.records.set(this.lastSeq, bytes);
    this.#deliverAll();
  }

  /** Says this to everybody who pulls. */
  say(word: { code: number; description?: string; lastConsumerSeq?: number; lastStreamSeq?: number }): void {
    for (const { inbox } of this.#consumers.values()) {
      const { code, description = "", lastConsumerSeq, lastStreamSeq } = word;
      const status = { code, description, lastConsumerSeq, lastStreamSeq };
      this.#send(inbox, { subject: inbox ?? "", status });
    }
  }

  forgetConsumers(): void {
    this.#consumers.clear();
  }

  /** Refuses every append. */
  async ask(subject: string, data: Uint8Array): Promise<RequestOutcome> {
    if (this.status !== "connected") return ended.disconnected;
    if (subject === FAKE_SUBJECT) {
      const description = `wrong last sequence: ${this.lastSeq + this.countsMoreBy}`;
      return answered({ error: { err_code: 10071, description } });
    }
    const [, , entity, verb, , name = ""] = subject.split(".");
    const body = data.length === 0 ? {} : JSON.parse(new TextDecoder().decode(data));
    switch (`${entity}.${verb}`) {
      case "STREAM.INFO": {
        const { firstSeq, lastSeq, records } = this;
        const state = { first_seq: firstSeq, last_seq: lastSeq, messages: records.size, bytes: 0 };
        if (this.created === undefined)
          return answered({ error: { err_code: 10059, description: "stream not found" } });
        return answered({ config: {}, created: this.created, state });
      }
      case "STREAM.PURGE": {
        this.purges.push(body.seq);
        for (const seq of this.records.keys()) if (seq < body.seq) this.records.delete(seq);
        this.firstSeq = Math.max(this.firstSeq, body.seq);
        return answered({ success: true });
      }
      case "STREAM.MSG": {
        const bytes = this.records.get(body.seq);
        if (bytes === undefined)
          return answered({ error: { err_code: 10037, description: "no message found" } });
        if (this.unreadable.has(body.seq))
          return answered({ error: { err_code: 10051, description: "partial cache" } });
        return answered({
          message: { seq: body.seq, subject: FAKE_SUBJECT, data: Buffer.from(bytes).toString("base64") },
        });
      }
      case "CONSUMER.CREATE": {
        const nextSeq = Math.max(body.config.opt_start_seq, this.firstSeq);
        this.#consumers.set(name, { nextSeq, consumerSeq: 0, inbox: undefined, wanted: 0, wantedBytes: 0 });
        this.begun.push(body.config.opt_start_seq);
        return answered({});
      }
      default:
        this.#consumers.delete(name);
        return answered({});
    }
  }

  publish(subject: string, data: Uint8Array, reply: string): void {
    const consumer = this.#consumers.get(subject.split(".").at(-1) ?? "");
    if (consumer === undefined) return;
    const { batch, max_bytes } = JSON.parse(new TextDecoder().decode(data)) as PullRequest;
    consumer.inbox = reply;
    consumer.wanted = batch;
    consumer.wantedBytes = max_bytes;
    setImmediate(() => this.#deliver(consumer));
  }

  listen(handler: (message: StreamMessage) => void): Listening {
    this.#inboxCount += 1;
    const inbox = `inbox.${this.#inboxCount}`;
    this.#inboxes.set(inbox, handler);
    return { inbox, stop: () => this.#inboxes.delete(inbox) };
  }

  onStatus(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  become(status: StreamWire["status"]): void {
    this.status = status;
    for (const listener of [...this.#listeners]) listener();
  }

  async close(): Promise<void> {
    this.become("closed");
  }

  #deliverAll(): void {
    for (const consumer of this.#consumers.values()) this.#deliver(consumer);
  }

  #deliver(consumer: Consumer): void {
    for (; !this.isMute && consumer.wanted > 0 && consumer.nextSeq <= this.lastSeq; consumer.nextSeq++) {
      const data = this.records.get(consumer.nextSeq);
      if (data === undefined) continue;
      consumer.wantedBytes -= data.length;
      if (consumer.wantedBytes < 0) {
        consumer.wanted = 0;
        const status = {
          code: 409,
          description: "Message Size Exceeds MaxBytes",
          lastConsumerSeq: undefined,
          lastStreamSeq: undefined,
        };
        return this.#send(consumer.inbox, { status });
      }
      consumer.consumerSeq += 1;
      consumer.wanted -= 1;
      this.delivered += 1;
      if (this.lost.delete(consumer.nextSeq)) continue;
      const reply = `${this.ackPrefix}.c.1.${consumer.nextSeq}.${consumer.consumerSeq}.0.0`;
      this.#send(consumer.inbox, { subject: FAKE_SUBJECT, reply, data });
    }
  }

  #send(inbox: string | undefined, message: Partial<StreamMessage> & { status?: StreamStatus }): void {
    const handler = this.#inboxes.get(inbox ?? "");
    handler?.({ subject: "", reply: "", data: new Uint8Array(), status: undefined, ...message });
  }
}

function answered(value: unknown): RequestOutcome {
  return { kind: "answered", data: new TextEncoder().encode(JSON.stringify(value)) };
}
