// The production journal over the simulated JetStream, for tests. Connections have no delay. A test sets the fates of
// the next messages; a tap on each connection drops, adds and counts messages.

import { expect } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { swarmId } from "../../src/ids.ts";
import { StreamJournal } from "../../src/journal/stream/stream-journal.ts";
import type { Listening, StreamMessage, StreamStatus, StreamWire } from "../../src/journal/stream/wire.ts";
import { limits } from "../../src/limits.ts";
import { type PublishFate, type QuestionFate, SimJetStream } from "../../src/sim/fault/jetstream.ts";
import type { SimStream } from "../../src/sim/fault/stream.ts";
import { type Line, SimStreamWire } from "../../src/sim/fault/stream-wire.ts";

export interface OpenOptions {
  readonly bytesMax?: number;
  /** Default: a single server. */
  readonly servers?: StreamWire["servers"];
}

export class StreamWorld {
  /** Delay after which each message to the server arrives a second time, ms. */
  copyMs: number | undefined;
  copiesArrived = 0;
  publishFates: PublishFate[] = [];
  /** Verbs of all requests to the API, in order. */
  readonly asked: string[] = [];
  /** Fates of the next requests per verb, in order. */
  questionFates: { readonly verb: string; readonly fate: QuestionFate }[] = [];
  readonly server: SimJetStream;
  readonly #clock: Clock;
  readonly #taps = new WeakMap<StreamJournal, WireTap>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.server = new SimJetStream(clock, {
      onPublish: () => this.publishFates.shift() ?? "store",
      onQuestion: (verb) => {
        this.asked.push(verb);
        return this.questionFates[0]?.verb === verb
          ? (this.questionFates.shift()?.fate ?? "answer")
          : "answer";
      },
    });
  }

  /** With a journal that has segment 1. */
  static async withSegment(
    options: OpenOptions = {},
  ): Promise<{ world: StreamWorld; journal: StreamJournal }> {
    const world = new StreamWorld();
    const journal = world.open(options);
    await journal.create(1);
    return { world, journal };
  }

  /** Of segment 1. */
  get stream(): SimStream {
    return this.server.stream("WAGGLE_test_1") ?? expect.fail("no stream of segment 1");
  }

  open({ bytesMax = limits.journalBytesMax, servers = "one" }: OpenOptions = {}): StreamJournal {
    const line = new ManualLine(this);
    const clock = this.#clock;
    const sim = new SimStreamWire({
      ...{ server: this.server, line, reader: "r", clock, servers },
      maxPayloadBytes: limits.maxPayloadBytesDefault,
    });
    const tap = new WireTap(sim, line);
    const journal = new StreamJournal({ wire: tap, swarm: swarmId("test"), replicas: 3, bytesMax, clock });
    this.#taps.set(journal, tap);
    return journal;
  }

  tapOf(journal: StreamJournal): WireTap {
    return this.#taps.get(journal) ?? expect.fail("no such journal");
  }
}

/** A connection, able to lose deliveries and to inject messages not sent by the server. */
export class WireTap implements StreamWire {
  readonly maxPayloadBytes: number;
  readonly servers: StreamWire["servers"];
  readonly serverVersion: string;
  /** Where each consumer began. */
  readonly begun: number[] = [];
  /** Positions of records; the next delivery of each record is lost. */
  readonly lost = new Set<number>();
  delivered = 0;
  /** Nothing is delivered. */
  isMute = false;
  /** Number of next consumers to place on a server with an empty replica of the stream. */
  staleConsumers = 0;
  /** In place of `$JS.ACK.<stream>`. */
  ackPrefix: string | undefined;
  readonly #wire: SimStreamWire;
  readonly #line: ManualLine;
  readonly #handlers = new Set<(message: StreamMessage) => void>();

  constructor(wire: SimStreamWire, line: ManualLine) {
    this.maxPayloadBytes = wire.maxPayloadBytes;
    this.servers = wire.servers;
    this.serverVersion = wire.serverVersion;
    this.#wire = wire;
    this.#line = line;
  }

  get status(): StreamWire["status"] {
    return this.#wire.status;
  }

  become(status: Line["status"]): void {
    this.#line.become(status);
  }

  /** A word of the server to every consumer. */
  say(status: Partial<StreamStatus> & Pick<StreamStatus, "code" | "description">): void {
    const word = { lastConsumerSeq: undefined, lastStreamSeq: undefined, ...status };
    for (const handler of [...this.#handlers])
      handler({ subject: "", reply: "", data: new Uint8Array(), status: word });
  }

  ask: StreamWire["ask"] = (subject, data, options) => {
    if (subject.startsWith("$JS.API.CONSUMER.CREATE."))
      this.begun.push(JSON.parse(new TextDecoder().decode(data)).config.opt_start_seq);
    return this.#wire.ask(subject, data, options);
  };

  publish(subject: string, data: Uint8Array, reply: string): void {
    this.#wire.publish(subject, data, reply);
  }

  listen(handler: (message: StreamMessage) => void): Listening {
    this.#handlers.add(handler);
    const isStale = this.staleConsumers > 0;
    if (isStale) this.staleConsumers -= 1;
    const listening = this.#wire.listen((message) => {
      const [seq = ""] = message.reply.split(".").slice(5);
      if (this.isMute) return;
      if (isStale) return handler(emptyStreamInfo());
      if (seq !== "") this.delivered += 1;
      if (this.lost.delete(Number(seq))) return;
      const prefix = this.ackPrefix;
      const reply =
        prefix === undefined ? message.reply : message.reply.replace(/^\$JS\.ACK\.[^.]+/, () => prefix);
      handler({ ...message, reply });
    });
    const stop = () => {
      this.#handlers.delete(handler);
      listening.stop();
    };
    return { inbox: listening.inbox, stop };
  }

  onStatus(listener: () => void): () => void {
    return this.#wire.onStatus(listener);
  }

  async close(): Promise<void> {
    await this.#wire.close();
  }
}

function emptyStreamInfo(): StreamMessage {
  const status = { code: 100, description: "Idle Heartbeat", lastConsumerSeq: 0, lastStreamSeq: 0 };
  return { subject: "", reply: "", data: new Uint8Array(), status };
}

class ManualLine implements Line {
  status: Line["status"] = "connected";
  readonly #world: StreamWorld;
  readonly #listeners = new Set<() => void>();

  constructor(world: StreamWorld) {
    this.#world = world;
  }

  carry(direction: "there" | "back", arrive: () => void): void {
    setImmediate(arrive);
    if (direction !== "there" || this.#world.copyMs === undefined) return;
    setTimeout(() => {
      arrive();
      this.#world.copiesArrived += 1;
    }, this.#world.copyMs);
  }

  onStatus(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  become(status: Line["status"]): void {
    this.status = status;
    for (const listener of [...this.#listeners]) listener();
  }
}
