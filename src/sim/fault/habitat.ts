// What the simulated nodes share: time, wires, the server and its journal, and where a run's findings go.

import { type Logger, pino } from "pino";
import { type SwarmId, swarmId } from "../../ids.ts";
import { segmentNumberIn, streamNameOf } from "../../journal/stream/settings.ts";
import { limits } from "../../limits.ts";
import { type Subjects, subjectsOf } from "../../protocol/subjects.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Observation, Reading } from "../history/observation.ts";
import type { SeededRandom } from "../random.ts";
import { Connection } from "./connection.ts";
import { Engine } from "./engine.ts";
import { JOURNAL_BYTES, journalOf, type Profile } from "./fault.ts";
import { SimJetStream } from "./jetstream.ts";
import { JournalFates } from "./journal-fates.ts";
import { DRIFT, Life, type MachineClock, WALL_START_MS } from "./life.ts";
import { LifeRecorder } from "./life-recorder.ts";
import { Link } from "./link.ts";
import { Occurrences } from "./occurrences.ts";
import { Server } from "./server.ts";
import { LinkLine, SimJournal } from "./sim-journal.ts";
import type { SimStream } from "./stream.ts";
import { SimStreamWire } from "./stream-wire.ts";
import { TermPace } from "./term-pace.ts";

/** Something that must not be. */
export interface Finding {
  /** Which check found it. */
  readonly check: string;
  readonly sentence: string;
  /** When, virtual ms. */
  readonly atMs: number;
}

/** Takes what the nodes log: a line of JSON each, with the node and virtual ms. */
export interface NodeLog {
  readonly level: string;
  write(line: string): void;
}

/** How coordinators, clients and agents say in the log that something acknowledged was lost. */
const LOSS_REPORT = /halted: this coordinator|lost acknowledged records|may be lost/;
/** How long a server goes on believing in a process that was killed, at most, ms. */
const LINGER_MS = 5_000;
/** How far wall clocks differ to begin with, at most, ms. */
const SKEW_MS = 3_000;

export class Habitat {
  readonly engine = new Engine();
  readonly server = new Server();
  readonly occurrences = new Occurrences();
  readonly pace = new TermPace();
  readonly findings: Finding[] = [];
  /** What nodes asked and were told. */
  readonly history: Observation[] = [];
  /** Told of all that is added to the history. */
  onObserved: (observation: Observation) => void = () => undefined;
  readonly profile: Profile;
  /** Lines of the log that report a loss. */
  readonly lossReports: string[] = [];
  /** What coordinators made of the journal. */
  readonly readings: Reading[] = [];
  readonly swarm: SwarmId = swarmId("torture");
  readonly subjects: Subjects = subjectsOf(this.swarm);
  /** A record was stored, a segment created or removed. */
  onStored: () => void = () => undefined;
  readonly fates: JournalFates;
  readonly jetStream: SimJetStream;
  readonly #logger: Logger;
  readonly #random: SeededRandom;
  readonly #linkByName = new Map<string, Link>();
  readonly #connectionsByLink = new Map<string, Set<{ lose(): void }>>();
  #livesEver = 0;
  /** Nothing goes wrong any more: handlers do what they should. */
  hasHealed = false;

  /** @param log default: nobody hears what the nodes log */
  constructor(
    random: SeededRandom,
    log: NodeLog = { level: "silent", write: () => undefined },
    profile: Profile = "inside",
  ) {
    this.#random = random;
    this.profile = profile;
    const mixin = () => ({ atMs: Math.round(this.engine.nowMs) });
    const isInside = profile === "inside";
    const level = !isInside && (log.level === "silent" || log.level === "fatal") ? "error" : log.level;
    this.#logger = pino(
      { level, base: null, timestamp: false, mixin },
      isInside ? log : this.#listening(log),
    );
    this.fates = new JournalFates(random.split("fates"), this.occurrences);
    const clock = {
      now: () => WALL_START_MS + Math.floor(this.engine.nowMs),
      monotonicMs: () => this.engine.nowMs,
      after: (ms: number, run: () => void) => this.engine.after(ms, "server", run),
      soon: (run: () => void) => void this.engine.after(0, "server", run),
    };
    this.jetStream = new SimJetStream(clock, this.fates);
    this.jetStream.onChanged = () => this.onStored();
  }

  /** Numbers of the segments that exist, ascending, whatever an answer says. */
  segmentNumbers(): readonly number[] {
    const numbers = this.jetStream.streams.map(({ name }) => segmentNumberIn(name, this.swarm));
    return numbers.filter((number) => number !== undefined).sort((one, other) => one - other);
  }

  segmentStream(number: number): SimStream | undefined {
    return this.jetStream.stream(streamNameOf({ swarm: this.swarm, number }));
  }

  /** The newest segment that exists. */
  get newestStream(): SimStream | undefined {
    return this.segmentStream(this.segmentNumbers().at(-1) ?? 0);
  }

  get usage(): { readonly bytes: number; readonly bytesMax: number } {
    const bytes = this.jetStream.streams.reduce((sum, stream) => sum + stream.bytes, 0);
    return { bytes, bytesMax: JOURNAL_BYTES };
  }

  links(): Iterable<Link> {
    return this.#linkByName.values();
  }

  loggerOf(node: string): Logger {
    return this.#logger.child({ node });
  }

  /** Sets a machine's clocks wrong from the beginning, each in its own way. */
  skew(name: string, machine: MachineClock): void {
    const random = this.#random.split(`machine/${name}`);
    machine.wallSkewMs = Math.round(SKEW_MS * (2 * random.fraction() - 1));
    machine.rate = 1 + DRIFT * (2 * random.fraction() - 1);
  }

  newLife(node: string, machine: MachineClock): Life {
    this.#livesEver += 1;
    const name = `${node}.${this.#livesEver}`;
    return new Life(name, this.engine, machine, this.#random.split(`life/${name}`));
  }

  newConnection(node: string, life: Life): Transport {
    const { engine, server, swarm } = this;
    const lingerMs = this.#random.chance(0.5) ? 0 : LINGER_MS * this.#random.fraction();
    const { coordinator: coordinatorSubject } = subjectsOf(swarm);
    const link = this.linkOf(node);
    const connection = new Connection({ engine, server, life, link, coordinatorSubject, lingerMs });
    this.#keep(node, connection, life);
    const recorder = {
      node: life.name,
      swarm,
      now: () => engine.nowMs,
      record: (observation: Observation) => this.#observed(observation),
    };
    const recording = new LifeRecorder(connection, recorder, life);
    connection.onCopy = ({ subject, data }) => recording.noteCopy(subject, data);
    return recording;
  }

  /** A session's way to the journal, over one link. */
  newJournal(node: string, life: Life): SimJournal {
    const name = journalOf(node);
    const { jetStream: server, occurrences, swarm } = this;
    const { clock, random } = life;
    const line = new LinkLine(life, this.linkOf(name));
    this.#keep(name, line, life);
    const wire = new SimStreamWire({
      server,
      line,
      reader: name,
      clock,
      maxPayloadBytes: limits.maxPayloadBytesDefault,
      servers: "cluster",
    });
    return new SimJournal(
      { wire, swarm, replicas: 3, bytesMax: JOURNAL_BYTES, clock, random },
      {
        stored: (segment, position) => this.segmentStream(segment)?.at(position),
        occurrences,
        onSend: (bytes) => this.pace.sent(bytes, this.engine.nowMs),
      },
    );
  }

  /** Another client writes into the newest segment. */
  writeForeign(): void {
    this.newestStream?.intrude(Buffer.from("not a record of ours"));
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

  /** Outside the fault model only two promises count, and that nothing escapes. */
  found(check: string, sentence: string): void {
    if (this.profile === "outside" && !check.startsWith("outside ") && check !== "nothing-escapes") return;
    this.findings.push({ check, sentence, atMs: this.engine.nowMs });
  }

  /** What production code let escape: always a finding. */
  escaped(node: string, error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.found("nothing-escapes", `${node}: ${text}`);
  }

  #listening(log: NodeLog): NodeLog {
    const write = (line: string) => {
      if (LOSS_REPORT.test(line)) this.lossReports.push(line);
      if (log.level !== "silent") log.write(line);
    };
    return { level: log.level, write };
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
