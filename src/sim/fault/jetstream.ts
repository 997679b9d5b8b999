// A NATS server's JetStream, limited to the requests of a journal of segments: any number of streams, and the answers
// of a real server, misleading answers included. The production journal (journal/stream) runs against it in a
// simulation. Not here: a stream (stream.ts), the link to the server (stream-wire.ts), and the times of faults (the
// caller of `StreamFates`).
//
// Answers follow nats-server 2.9.10, 2.10.27 and 2.15.1.

import type { Clock } from "../../clock.ts";
import { apiCodes } from "../../journal/stream/api.ts";
import { STALE_MS_MAX } from "./fault.ts";
import {
  type Delivery,
  type PullRequest,
  type RecordQuestion,
  SimStream,
  type SimStreamOptions,
  status,
  wrongLastSequence,
} from "./stream.ts";

/** The fate of an append. */
export type PublishFate =
  | "store"
  /** Stored, and the acknowledgement is lost. */
  | "store-unheard"
  /** Neither stored nor answered. */
  | "drop"
  /** Refused because of a record that no majority ever stored. */
  | "refuse-uncommitted"
  /** `{"seq":0,"duplicate":true}` for a record never stored: 2.10.27 can answer so. */
  | "false-duplicate"
  /** Counted and acknowledged, but never found: 2.9.10 after a flipped bit in the newest block. */
  | "forget"
  | "full"
  /** JetStream is not enabled: a server's answer during fail-over. */
  | "off"
  | "nobody"
  /** Held by the server for `lateMs`, then handled; lost in a power loss. */
  | { readonly lateMs: number };

/** The fate of an API request. */
export type QuestionFate =
  | "answer"
  /** Neither carried out nor answered. */
  | "drop"
  /** Carried out, but the answer is lost. */
  | "unheard"
  | "off"
  | "nobody"
  /** No room for a new stream. */
  | "full"
  /** The server cannot make a new stream's files. */
  | "no-files"
  /** The record or stream exists, but the server does not find it. */
  | "not-found"
  /** Answered by a server that lacks the newest `staleBy` records or streams. */
  | { readonly staleBy: number }
  /** As `PublishFate`. */
  | { readonly lateMs: number };

export interface StreamFates {
  onPublish(stream: string): PublishFate;
  /** @param verb `STREAM.INFO`, `STREAM.MSG.GET`, `CONSUMER.CREATE` and so on
   *  @param stream empty for `STREAM.NAMES` */
  onQuestion(verb: string, stream: string): QuestionFate;
}

/** An answer. `nobody`: no responders. */
export type Reply = (answer: object | "nobody") => void;

interface CreateRequest {
  readonly name: string;
  readonly subjects: readonly string[];
}

const NAMES_PER_PAGE = 1_024;
const apiErrors = {
  storeFailed: { err_code: apiCodes.storeFailed, description: "maximum bytes exceeded" },
  noStorage: {
    err_code: apiCodes.noStorage,
    code: 500,
    description: "insufficient storage resources available",
  },
  noFiles: { err_code: apiCodes.storeNotCreated, code: 500, description: "error creating store for stream" },
  off: { err_code: apiCodes.off, code: 503, description: "JetStream system temporarily unavailable" },
  noMessage: { err_code: apiCodes.messageNotFound, code: 404, description: "no message found" },
  noStream: { err_code: apiCodes.streamNotFound, code: 404, description: "stream not found" },
  badRequest: { err_code: 10003, code: 400, description: "bad request" },
  nameInUse: {
    err_code: apiCodes.streamNameInUse,
    code: 400,
    description: "stream name already in use with a different configuration",
  },
  overlap: {
    err_code: apiCodes.subjectsOverlap,
    code: 400,
    description: "subjects overlap with an existing stream",
  },
} as const;

/** All streams of a server, or of a cluster that behaves like a single server. */
export class SimJetStream {
  /** A record was stored, a stream was created or removed. */
  onChanged: (stream: SimStream) => void = () => undefined;
  readonly #clock: Clock;
  readonly #fates: StreamFates;
  /** In the order of their creation. */
  readonly #streams = new Map<string, SimStream>();
  readonly #removed = new Map<string, SimStream>();
  #losses = 0;

  constructor(clock: Clock, fates: StreamFates) {
    this.#clock = clock;
    this.#fates = fates;
  }

  stream(name: string): SimStream | undefined {
    return this.#streams.get(name);
  }

  get streams(): readonly SimStream[] {
    return [...this.#streams.values()];
  }

  /**
   * Number of losses of the store. A message sent before a loss is lost, too: otherwise a copy of a refused append
   * could find exactly its position free.
   */
  get losses(): number {
    return this.#losses;
  }

  // --- faults ---------------------------------------------------------------------------------------

  /** The server process restarted: readers must create new consumers. The disks keep everything. */
  restart(): void {
    for (const stream of this.#streams.values()) stream.forgetConsumers();
  }

  /** A power loss takes a newly created stream. */
  loseStream(name: string): void {
    this.#take(name);
    this.#losses += 1;
  }

  /** A power loss undoes the removal of a stream. */
  undoRemoval(name: string): void {
    const stream = this.#removed.get(name);
    if (stream === undefined) return;
    this.#removed.delete(name);
    this.#streams.set(name, stream);
    this.#losses += 1;
  }

  // --- requests -------------------------------------------------------------------------------------

  /** A message to a stream's subject, or a request to the API. @param losses when the message left */
  handle(
    subject: string,
    data: Uint8Array,
    headers: Readonly<Record<string, string>>,
    reply: Reply,
    losses = this.#losses,
  ): void {
    if (losses !== this.#losses) return;
    if (subject.startsWith("$JS.API.")) return this.#question(subject.split(".").slice(2), data, reply);
    const stream = this.#takerOf(subject);
    if (stream === undefined) return reply("nobody");
    this.#publish(stream.name, subject, { data, expected: headers["Nats-Expected-Last-Sequence"] }, reply);
  }

  /** A consumer is asked for records: `$JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>`. */
  pull(subject: string, data: Uint8Array, reader: string, send: (delivery: Delivery) => void): void {
    const [stream = "", consumer = ""] = subject.split(".").slice(5);
    const request = { ...(parse(data) as PullRequest), reader };
    const isThere = this.#streams.get(stream)?.pull(consumer, request, send, this.#clock) ?? false;
    if (!isThere) send(status(503, "", { delivered: 0, nextSeq: 1 }));
  }

  #publish(
    name: string,
    subject: string,
    { data, expected }: { readonly data: Uint8Array; readonly expected: string | undefined },
    reply: Reply,
  ): void {
    const stream = this.#streams.get(name);
    if (stream === undefined) return reply("nobody");
    const message = {
      subject,
      bytes: data,
      expectedSeq: expected === undefined ? undefined : Number(expected),
    };
    const fate = this.#fates.onPublish(name);
    if (typeof fate === "object")
      return this.#later(fate.lateMs, () => reply(this.#streams.get(name)?.publish(message) ?? "nobody"));
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
      case "refuse-uncommitted":
        return reply(wrongLastSequence(stream.lastSeq + 1));
      case "false-duplicate":
        return reply({ stream: name, seq: 0, duplicate: true });
      case "full":
        return reply({ error: apiErrors.storeFailed });
      case "off":
        return reply({ error: apiErrors.off });
      case "nobody":
        return reply("nobody");
    }
  }

  #question([kind = "", ...rest]: readonly string[], data: Uint8Array, reply: Reply): void {
    const isGet = rest[0] === "MSG";
    const verb = isGet ? `${kind}.MSG.GET` : `${kind}.${rest[0] ?? ""}`;
    const [stream = "", consumer = ""] = rest.slice(isGet ? 2 : 1);
    const fate = this.#fates.onQuestion(verb, stream);
    const answer = (staleBy = 0) => this.#answer(verb, { stream, consumer, body: parse(data), staleBy });
    if (typeof fate === "object" && "lateMs" in fate) return this.#later(fate.lateMs, () => reply(answer()));
    if (typeof fate === "object") return reply(answer(fate.staleBy));
    switch (fate) {
      case "answer":
        return reply(answer());
      case "drop":
        return;
      case "unheard":
        answer();
        return;
      case "nobody":
        return reply("nobody");
      case "off":
        return reply({ error: apiErrors.off });
      case "full":
        return reply(verb === "STREAM.CREATE" ? { error: apiErrors.noStorage } : answer());
      case "no-files":
        return reply({ error: apiErrors.noFiles });
      case "not-found":
        return reply({ error: isGet ? apiErrors.noMessage : apiErrors.noStream });
    }
  }

  #answer(
    verb: string,
    {
      stream: name,
      consumer,
      body,
      staleBy,
    }: { stream: string; consumer: string; body: object; staleBy: number },
  ): object {
    if (verb === "STREAM.NAMES") return this.#names(body as NamesRequest, staleBy);
    if (verb === "STREAM.CREATE") return this.#create(body as CreateRequest);
    const stream = this.#streams.get(name);
    if (stream === undefined) return { error: apiErrors.noStream };
    switch (verb) {
      case "STREAM.INFO":
        return stream.describe(staleBy);
      case "STREAM.MSG.GET":
        return stream.get(body as RecordQuestion, staleBy);
      case "STREAM.DELETE":
        return this.#remove(stream);
      case "CONSUMER.CREATE":
        return stream.createConsumer(
          consumer,
          (body as { config: { opt_start_seq: number } }).config.opt_start_seq,
        );
      case "CONSUMER.DELETE":
        return stream.forgetConsumer(consumer);
      default:
        return { error: apiErrors.badRequest };
    }
  }

  #names({ subject, offset = 0 }: NamesRequest, staleBy: number): object {
    const known = this.streams.slice(0, Math.max(0, this.#streams.size - staleBy));
    const isOld = ({ createdMs }: SimStream) => this.#clock.monotonicMs() - createdMs > STALE_MS_MAX;
    const names = [...known, ...this.streams.slice(known.length).filter(isOld)]
      .filter(({ config }) => config.subjects.some((each) => isMatch(subject, each)))
      .map(({ name }) => name)
      .sort();
    return { total: names.length, offset, streams: names.slice(offset, offset + NAMES_PER_PAGE) };
  }

  #create(config: CreateRequest): object {
    const found = this.#streams.get(config.name);
    if (found !== undefined) {
      const isSame = JSON.stringify(found.config) === JSON.stringify(config);
      return isSame ? found.describe() : { error: apiErrors.nameInUse };
    }
    if (config.subjects.some((subject) => this.#takerOf(subject) !== undefined))
      return { error: apiErrors.overlap };
    const options: SimStreamOptions = {
      config,
      created: new Date(this.#clock.now()).toISOString(),
      createdMs: this.#clock.monotonicMs(),
      onChanged: (stream) => this.onChanged(stream),
      onLoss: () => {
        this.#losses += 1;
      },
    };
    const stream = new SimStream(options);
    this.#streams.set(config.name, stream);
    this.onChanged(stream);
    return stream.describe();
  }

  #remove(stream: SimStream): object {
    this.#take(stream.name);
    this.#removed.set(stream.name, stream);
    this.onChanged(stream);
    return { success: true };
  }

  #take(name: string): void {
    this.#streams.get(name)?.forgetConsumers("Consumer Deleted");
    this.#streams.delete(name);
  }

  #later(ms: number, run: () => void): void {
    const losses = this.#losses;
    this.#clock.after(ms, () => {
      if (losses === this.#losses) run();
    });
  }

  #takerOf(subject: string): SimStream | undefined {
    return this.streams.find(({ config }) => config.subjects.includes(subject));
  }
}

interface NamesRequest {
  readonly subject: string;
  readonly offset?: number;
}

/** `*` is any one token, `>` at the end any tokens. */
function isMatch(pattern: string, subject: string): boolean {
  const tokens = subject.split(".");
  const wanted = pattern.split(".");
  return (
    wanted.every((each, at) => (each === ">" ? at < tokens.length : each === "*" || each === tokens[at])) &&
    (wanted.at(-1) === ">" || wanted.length === tokens.length)
  );
}

function parse(data: Uint8Array): object {
  return data.length === 0 ? {} : JSON.parse(new TextDecoder().decode(data));
}
