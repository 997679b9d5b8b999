// Shared by the simulated nodes: time, links, the server with its journal, and the findings of the run.

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
import { Link } from "./link.ts";
import { Occurrences } from "./occurrences.ts";
import { Server } from "./server.ts";
import { DRIFT, type MachineClock, Session, WALL_START_MS } from "./session.ts";
import { SessionRecorder } from "./session-recorder.ts";
import { LinkLine, SimJournal } from "./sim-journal.ts";
import type { SimStream } from "./stream.ts";
import { SimStreamWire } from "./stream-wire.ts";
import { TermPace } from "./term-pace.ts";

/** A violation found in the run. */
export interface Finding {
  /** Name of the check. */
  readonly check: string;
  readonly sentence: string;
  /** Time of the finding, virtual ms. */
  readonly atMs: number;
}

/** Receives the logs of the nodes: a JSON line per entry, with the node and virtual ms. */
export interface NodeLog {
  readonly level: string;
  write(line: string): void;
}

/** Log texts of coordinators, clients and agents that report a loss of acknowledged records. */
const LOSS_REPORT = /halted: this coordinator|lost acknowledged records|may be lost/;
/** Longest time until the server notices the end of a killed process, ms. */
const LINGER_MS = 5_000;
/** Largest initial difference of wall clocks from true time, ms. */
const SKEW_MS = 3_000;

export class Habitat {
  readonly engine = new Engine();
  readonly server = new Server();
  readonly occurrences = new Occurrences();
  readonly pace = new TermPace();
  readonly findings: Finding[] = [];
  /** The recorded requests of nodes and the answers. */
  readonly history: Observation[] = [];
  /** Called with each new observation. */
  onObserved: (observation: Observation) => void = () => undefined;
  readonly profile: Profile;
  /** Log lines that report a loss. */
  readonly lossReports: string[] = [];
  /** The states of coordinators along the journal. */
  readonly readings: Reading[] = [];
  readonly swarm: SwarmId = swarmId("torture");
  readonly subjects: Subjects = subjectsOf(this.swarm);
  /** Called when a record is stored, or a segment created or removed. */
  onStored: () => void = () => undefined;
  readonly fates: JournalFates;
  readonly jetStream: SimJetStream;
  readonly #logger: Logger;
  readonly #random: SeededRandom;
  readonly #linkByName = new Map<string, Link>();
  readonly #connectionsByLink = new Map<string, Set<{ lose(): void }>>();
  #incarnationsEver = 0;
  /** True once all faults have healed: from then on handlers work normally. */
  hasHealed = false;

  /** @param log receives the logs of the nodes; default: none */
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

  /** Numbers of the existing segments, ascending, whatever an answer says. */
  segmentNumbers(): readonly number[] {
    const numbers = this.jetStream.streams.map(({ name }) => segmentNumberIn(name, this.swarm));
    return numbers.filter((number) => number !== undefined).sort((one, other) => one - other);
  }

  segmentStream(number: number): SimStream | undefined {
    return this.jetStream.stream(streamNameOf({ swarm: this.swarm, number }));
  }

  /** The newest existing segment. */
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

  /** Sets the clocks of a machine wrong from the beginning, differently per machine. */
  skew(name: string, machine: MachineClock): void {
    const random = this.#random.split(`machine/${name}`);
    machine.wallSkewMs = Math.round(SKEW_MS * (2 * random.fraction() - 1));
    machine.rate = 1 + DRIFT * (2 * random.fraction() - 1);
  }

  newSession(node: string, machine: MachineClock): Session {
    this.#incarnationsEver += 1;
    const name = `${node}.${this.#incarnationsEver}`;
    return new Session(name, this.engine, machine, this.#random.split(`life/${name}`));
  }

  newConnection(node: string, session: Session): Transport {
    const { engine, server, swarm } = this;
    const lingerMs = this.#random.chance(0.5) ? 0 : LINGER_MS * this.#random.fraction();
    const { coordinator: coordinatorSubject } = subjectsOf(swarm);
    const link = this.linkOf(node);
    const connection = new Connection({ engine, server, session, link, coordinatorSubject, lingerMs });
    this.#keep(node, connection, session);
    const recorder = {
      node: session.name,
      swarm,
      now: () => engine.nowMs,
      record: (observation: Observation) => this.#observed(observation),
    };
    const [agent = ""] = node.split("/");
    const recording = new SessionRecorder(connection, recorder, { session, agent });
    connection.onCopy = ({ subject, data }) => recording.noteCopy(subject, data);
    return recording;
  }

  /** The journal of a process, over a link of its own. */
  newJournal(node: string, session: Session): SimJournal {
    const name = journalOf(node);
    const { jetStream: server, occurrences, swarm } = this;
    const { clock, random } = session;
    const line = new LinkLine(session, this.linkOf(name));
    this.#keep(name, line, session);
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

  /** A foreign client writes into the newest segment. */
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

  /** Outside the fault model only two promises count, besides uncaught errors. */
  found(check: string, sentence: string): void {
    if (this.profile === "outside" && !check.startsWith("outside ") && check !== "nothing-escapes") return;
    this.findings.push({ check, sentence, atMs: this.engine.nowMs });
  }

  /** Reports an error that escaped from production code: always a finding. */
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

  #keep(link: string, connection: { lose(): void }, session: Session): void {
    const connections = this.#connectionsByLink.get(link) ?? new Set();
    this.#connectionsByLink.set(link, connections.add(connection));
    session.onEnd(() => connections.delete(connection));
  }
}
