// The journal in a JetStream stream, over a wire (wire.ts). Opening it, and its settings: nats.ts.

import { Aborts } from "../../abort.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../../clock.ts";
import { UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type {
  AppendOutcome,
  Durability,
  Journal,
  JournalPosition,
  JournalRecord,
  JournalUsage,
  ReplayOptions,
} from "../journal.ts";
import { closedError } from "../journal-errors.ts";
import { StreamApi, unansweredError } from "./api.ts";
import {
  APPEND_HEADERS_BYTES,
  appendHeaders,
  nowhereHeaders,
  readAppendAnswer,
  readRefusedAt,
} from "./append.ts";
import { StreamIdentity } from "./identity.ts";
import type { StreamAccess } from "./pull.ts";
import { readStream } from "./reader.ts";
import { fullText, usageOf } from "./room.ts";
import type { StreamWire } from "./wire.ts";

export interface StreamJournalOptions {
  readonly wire: StreamWire;
  readonly stream: string;
  /** Under which the records are stored. */
  readonly subject: string;
  /** As read back from the server. */
  readonly replicas: number;
  /** When the stream was created, as read back. Undefined: not known yet. */
  readonly created?: string;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly random?: Random;
}

export class StreamJournal implements Journal {
  readonly sharable = true;
  readonly durability: Durability;
  readonly #access: StreamAccess;
  readonly #wire: StreamWire;
  readonly #api: StreamApi;
  readonly #replicas: number;
  readonly #closed = new AbortController();
  /** Any number of readers ends with it. */
  readonly #aborts = new Aborts();

  constructor(options: StreamJournalOptions) {
    const { wire, stream, subject, replicas, clock = systemClock, random = systemRandom } = options;
    this.durability = durabilityOf(replicas);
    const identity = new StreamIdentity(stream, options.created, clock);
    const api = new StreamApi(wire, stream, { timeoutMs: limits.journalAskMs, identity });
    this.#access = { wire, api, subject, clock, random };
    this.#wire = wire;
    this.#replicas = replicas;
    this.#api = new StreamApi(wire, stream, { identity });
  }

  async position(): Promise<JournalPosition> {
    this.#requireOpen();
    const { firstSeq, lastSeq, records } = await this.#api.info();
    if (lastSeq === 0) return { firstSeq: 0, lastSeq: 0, missing: 0 };
    return { firstSeq, lastSeq, missing: lastSeq - firstSeq + 1 - records };
  }

  async append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome> {
    if (this.#closed.signal.aborted) return { kind: "unknown", cause: closedError() };
    const { maxPayloadBytes } = this.#wire;
    if (bytes.length + APPEND_HEADERS_BYTES > maxPayloadBytes) {
      return {
        kind: "full",
        message: `the server takes ${maxPayloadBytes} bytes at most, not ${bytes.length}`,
      };
    }
    const timeoutMs = limits.appendTimeoutMs;
    const headers = appendHeaders(expectedSeq);
    const answer = await this.#wire.ask(this.#access.subject, bytes, { timeoutMs, headers });
    if (answer.kind !== "answered")
      return { kind: "unknown", cause: unansweredError(answer.kind, timeoutMs) };
    const { stream } = this.#api;
    const outcome = readAppendAnswer(answer.data, { stream, seq: expectedSeq + 1 });
    return outcome.kind === "full" ? { ...outcome, message: fullText(stream, outcome.message) } : outcome;
  }

  async read(seq: number): Promise<JournalRecord | undefined> {
    this.#requireOpen();
    const record = await this.#api.read(seq);
    return record === undefined ? undefined : { seq, bytes: record.bytes };
  }

  async *replay(fromSeq: number, options: ReplayOptions = {}): AsyncGenerator<JournalRecord> {
    const { lastSeq } = await this.position();
    const ending = this.#aborts.linkedTo(this.#closed.signal);
    const { patienceMs = limits.journalSilenceMsMax } = options;
    const reading = { ...options, fromSeq, untilSeq: lastSeq, signal: ending.signal, patienceMs };
    try {
      yield* readStream(this.#access, reading);
    } finally {
      ending.abort();
    }
    this.#requireOpen();
  }

  async *follow(fromSeq: number, signal: AbortSignal, before?: JournalRecord): AsyncGenerator<JournalRecord> {
    const ending = this.#aborts.linkedTo(signal, this.#closed.signal);
    try {
      yield* readStream(this.#access, { fromSeq, before, signal: ending.signal });
    } finally {
      ending.abort();
    }
  }

  /** Never asks for more than the last record: a purge beyond the end moves the stream's sequence forward. */
  async purgeBelow(seq: number): Promise<void> {
    const { firstSeq, lastSeq } = await this.position();
    const below = Math.min(seq, lastSeq);
    if (below > firstSeq) await this.#api.purgeBelow(below);
  }

  /** Nothing less helps a nats-server 2.9 whose newest block is damaged: a purge that leaves it a record leaves it the
   *  block. Beyond the end it would move the stream's sequence forward. */
  async purgeThrough(seq: number): Promise<boolean> {
    if (this.#replicas > 1) return false;
    const { lastSeq } = await this.position();
    const endSeq = lastSeq < seq ? await this.#countedSeq() : lastSeq;
    if (endSeq !== seq) return false;
    await this.#api.purgeBelow(seq + 1);
    return true;
  }

  /** The last position by which the server judges appends. Once a nats-server 2.9 has met a damaged block, its stream's
   *  description may end below. @throws UnreachableError */
  async #countedSeq(): Promise<number | undefined> {
    const timeoutMs = limits.appendTimeoutMs;
    const nothing = new Uint8Array();
    const options = { timeoutMs, headers: nowhereHeaders };
    const answer = await this.#wire.ask(this.#access.subject, nothing, options);
    if (answer.kind !== "answered") throw unansweredError(answer.kind, timeoutMs);
    return readRefusedAt(answer.data);
  }

  async usage(): Promise<JournalUsage> {
    this.#requireOpen();
    return usageOf(await this.#api.info(), this.#api.stream);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#wire.close();
  }

  #requireOpen(): void {
    if (this.#closed.signal.aborted) throw closedError();
    if (this.#wire.status === "closed")
      throw new UnreachableError("the connection to NATS is closed for good");
  }
}

/** Nothing a client could check: permissions are the server's secret. */
const ANYBODY = "Unless the server gives its users permissions, any client of it can write anything.";

function durabilityOf(replicas: number): Durability {
  if (replicas >= 2) {
    return {
      class: "replicated",
      sentence:
        `Every batch is on most of ${replicas} NATS servers before it is answered; it survives the loss of one ` +
        `of them. A power failure of most of them at once may take what they had not synced yet. ${ANYBODY}`,
    };
  }
  return {
    class: "page-cache",
    sentence:
      "Every batch is written by one NATS server before it is answered: it survives that process, but a power " +
      "failure may take what was not synced yet, by default the last two minutes. A server of 2.10 or newer loses " +
      `nothing with \`sync_interval: always\` in its configuration, which a client cannot see. ${ANYBODY}`,
  };
}
