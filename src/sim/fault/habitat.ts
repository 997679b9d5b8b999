// What the simulated parties share: time, wires, the server and its journal, and where a run's findings go.

import { type Logger, pino } from "pino";
import { type SwarmId, swarmId } from "../../ids.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { streamConfigOf, streamNameOf } from "../../journal/stream/settings.ts";
import { StreamSnapshotStore } from "../../journal/stream/snapshots.ts";
import { limits } from "../../limits.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Observation, Reading } from "../history/observation.ts";
import type { SeededRandom } from "../random.ts";
import { Candidates } from "./candidates.ts";
import { Connection } from "./connection.ts";
import { Engine } from "./engine.ts";
import { journalOf, STREAM_BYTES } from "./fault.ts";
import { SimJetStream, type SimStream } from "./jetstream.ts";
import { SimStreamWire } from "./jetstream-wire.ts";
import { JournalFates } from "./journal-fates.ts";
import { DRIFT, Life, type MachineClock, WALL_START_MS } from "./life.ts";
import { LifeRecorder } from "./life-recorder.ts";
import { Link } from "./link.ts";
import { Occurrences } from "./occurrences.ts";
import { Server } from "./server.ts";
import { LinkLine, SimJournal } from "./sim-journal.ts";
import { TermPace } from "./term-pace.ts";

/** Something that must not be. */
export interface Finding {
  /** Which check found it. */
  readonly check: string;
  readonly sentence: string;
  /** When, virtual ms. */
  readonly atMs: number;
}

/** Takes what the parties log: a line of JSON each, with the party and virtual ms. */
export interface PartyLog {
  readonly level: string;
  write(line: string): void;
}

export interface Storage {
  readonly journal: SimJournal;
  readonly snapshots: SnapshotStore;
}

/** How long a server goes on believing in a process that was killed, at most, ms. */
const LINGER_MS = 5_000;
/** How far wall clocks differ to begin with, at most, ms. */
const SKEW_MS = 3_000;

export class Habitat {
  readonly engine = new Engine();
  readonly server = new Server();
  readonly occurrences = new Occurrences();
  readonly pace = new TermPace();
  readonly #candidates = new Candidates(this.occurrences);
  readonly findings: Finding[] = [];
  /** What parties asked and were told. */
  readonly history: Observation[] = [];
  /** Told of all that is added to the history. */
  onObserved: (observation: Observation) => void = () => undefined;
  /** What coordinators made of the journal. */
  readonly readings: Reading[] = [];
  readonly swarm: SwarmId = swarmId("torture");
  readonly fates: JournalFates;
  readonly jetStream: SimJetStream;
  readonly #logger: Logger;
  readonly #random: SeededRandom;
  readonly #linkByName = new Map<string, Link>();
  readonly #connectionsByLink = new Map<string, Set<{ lose(): void }>>();
  #livesEver = 0;
  /** Nothing goes wrong any more: handlers do what they should. */
  hasHealed = false;

  /** @param log default: nobody hears what the parties log */
  constructor(random: SeededRandom, log: PartyLog = { level: "silent", write: () => undefined }) {
    this.#random = random;
    const mixin = () => ({ atMs: Math.round(this.engine.nowMs) });
    this.#logger = pino({ level: log.level, base: null, timestamp: false, mixin }, log);
    this.fates = new JournalFates(random.split("fates"), this.occurrences);
    const clock = {
      now: () => WALL_START_MS + Math.floor(this.engine.nowMs),
      monotonicMs: () => this.engine.nowMs,
      after: (ms: number, run: () => void) => this.engine.after(ms, "server", run),
      soon: (run: () => void) => void this.engine.after(0, "server", run),
    };
    this.jetStream = new SimJetStream(clock, this.fates);
    for (const purpose of ["journal", "snapshots"] as const) {
      const id = { swarm: this.swarm, purpose };
      const config = streamConfigOf({ ...id, bytesMax: STREAM_BYTES });
      const question = `$JS.API.STREAM.CREATE.${streamNameOf(id)}`;
      this.jetStream.handle(question, Buffer.from(JSON.stringify(config)), {}, () => undefined);
    }
  }

  /** The journal's. */
  get stream(): SimStream {
    return this.#streamOf("journal");
  }

  get snapshotStream(): SimStream {
    return this.#streamOf("snapshots");
  }

  links(): Iterable<Link> {
    return this.#linkByName.values();
  }

  loggerOf(party: string): Logger {
    return this.#logger.child({ party });
  }

  /** Sets a machine's clocks wrong from the beginning, each in its own way. */
  skew(name: string, machine: MachineClock): void {
    const random = this.#random.split(`machine/${name}`);
    machine.wallSkewMs = Math.round(SKEW_MS * (2 * random.fraction() - 1));
    machine.rate = 1 + DRIFT * (2 * random.fraction() - 1);
  }

  newLife(party: string, machine: MachineClock): Life {
    this.#livesEver += 1;
    const name = `${party}.${this.#livesEver}`;
    return new Life(name, this.engine, machine, this.#random.split(`life/${name}`));
  }

  newConnection(party: string, life: Life): Transport {
    const { engine, server, swarm } = this;
    const lingerMs = this.#random.chance(0.5) ? 0 : LINGER_MS * this.#random.fraction();
    const { coordinator: coordinatorSubject } = subjectsOf(swarm);
    const link = this.linkOf(party);
    const connection = new Connection({ engine, server, life, link, coordinatorSubject, lingerMs });
    this.#keep(party, connection, life);
    const recorder = {
      party: life.name,
      swarm,
      now: () => engine.nowMs,
      record: (observation: Observation) => this.#observed(observation),
    };
    const recording = new LifeRecorder(connection, recorder, life);
    connection.onCopy = ({ subject, data }) => recording.noteCopy(subject, data);
    return recording;
  }

  /** A life's way to everything that is stored, over one link. */
  newStorage(party: string, life: Life): Storage {
    const name = journalOf(party);
    const subjects = subjectsOf(this.swarm);
    const { jetStream: server, stream, occurrences } = this;
    const { clock, random } = life;
    const line = new LinkLine(life, this.linkOf(name));
    this.#keep(name, line, life);
    const newWire = () =>
      new SimStreamWire({
        server,
        line,
        reader: name,
        clock,
        maxPayloadBytes: limits.maxPayloadBytesDefault,
      });
    const journal = new SimJournal({
      wire: newWire(),
      stream: stream.name,
      subject: subjects.journal,
      replicas: 3,
      clock,
      random,
      stored: stream,
      occurrences,
      onSend: (bytes, expectedSeq) => {
        const { nowMs } = this.engine;
        this.pace.sent(bytes, nowMs);
        this.#candidates.sent(party, bytes, { expectedSeq, nowMs });
      },
    });
    const { name: snapshotStream } = this.#streamOf("snapshots");
    const snapshots = new StreamSnapshotStore({ wire: newWire(), stream: snapshotStream, subjects, clock });
    return { journal, snapshots };
  }

  /** Somebody else writes into the journal. */
  writeAlien(): void {
    this.stream.intrude(Buffer.from("not a batch of ours"));
  }

  disconnect(link: string): void {
    for (const connection of this.#connectionsByLink.get(link) ?? []) connection.lose();
  }

  linkOf(name: string): Link {
    const known = this.#linkByName.get(name);
    if (known !== undefined) return known;
    const link = new Link(name, this.engine, this.#random.split(`link/${name}`));
    this.#linkByName.set(name, link);
    return link;
  }

  found(check: string, sentence: string): void {
    this.findings.push({ check, sentence, atMs: this.engine.nowMs });
  }

  /** What production code let escape: always a finding. */
  escaped(party: string, error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.found("nothing-escapes", `${party}: ${text}`);
  }

  #streamOf(purpose: "journal" | "snapshots"): SimStream {
    return this.jetStream.stream(streamNameOf({ swarm: this.swarm, purpose })) as SimStream;
  }

  #observed(observation: Observation): void {
    this.history.push(observation);
    this.onObserved(observation);
  }

  #keep(link: string, connection: { lose(): void }, life: Life): void {
    const connections = this.#connectionsByLink.get(link) ?? new Set();
    this.#connectionsByLink.set(link, connections.add(connection));
    life.onEnd(() => connections.delete(connection));
  }
}
