// Applies faults to a simulated swarm within the fault model (docs/fault-model.md). The store loses only records held
// by every running coordinator, and no coordinator ends until the journal continues from the copies.

import { batchIndex } from "../../ids.ts";
import { encodeBatch, hashOf } from "../../journal/records.ts";
import type { OpenAttempt } from "../../state/state.ts";
import type { AgentNode } from "./agent-node.ts";
import type { ClientNode } from "./client-node.ts";
import type { CoordinatorNode } from "./coordinator-node.ts";
import { journalOf } from "./fault.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalCondition } from "./journal-fates.ts";
import type { JournalTruth } from "./journal-truth.ts";
import type { Link } from "./link.ts";
import type { Victims } from "./nemesis.ts";
import { RestartWatch } from "./restart-watch.ts";
import type { SimStream } from "./stream.ts";

type Node = CoordinatorNode | AgentNode | ClientNode;

interface VictimsDeps {
  readonly habitat: Habitat;
  readonly truth: JournalTruth;
  readonly coordinators: readonly CoordinatorNode[];
  readonly agents: readonly AgentNode[];
  readonly clients: readonly ClientNode[];
}

/** Clocks may be wrong by days without forgotten tasks: the horizon of idempotency counts time under a leader. */
const SKEW_MS_MAX = 72 * 3_600_000;
/** Time for a restarted standby to read the journal from its newest base, ms. */
const REREAD_MS = 100;

export class SwarmVictims implements Victims {
  readonly #habitat: Habitat;
  readonly #truth: JournalTruth;
  readonly #coordinators: readonly CoordinatorNode[];
  readonly #agents: readonly AgentNode[];
  readonly #nodeById: ReadonlyMap<string, Node>;

  constructor({ habitat, truth, coordinators, agents, clients }: VictimsDeps) {
    this.#habitat = habitat;
    this.#truth = truth;
    new RestartWatch(habitat, truth);
    this.#coordinators = coordinators;
    this.#agents = agents;
    const nodes = [...coordinators, ...agents, ...clients];
    this.#nodeById = new Map(nodes.map((node) => [node.id, node]));
  }

  links(): Iterable<Link> {
    return this.#habitat.links();
  }

  leader(): string {
    return (this.#coordinators.find(({ isLeading }) => isLeading) ?? this.#coordinators[0])?.id ?? "";
  }

  get timeoutMs(): number {
    return this.#truth.state.leaderTimeoutMs;
  }

  standby(): string {
    return (this.#coordinators.findLast(({ isLeading }) => !isLeading) ?? this.#coordinators[0])?.id ?? "";
  }

  busiest(): string {
    const { agentById, taskById, at } = this.#truth.state;
    const attempts = [...agentById.values()].flatMap(({ online, open }) =>
      online ? [...open.values()] : [],
    );
    const leftMs = (open: OpenAttempt) => open.assignedAt + (taskById.get(open)?.spec.timeoutMs ?? 0) - at;
    const [longest] = attempts.toSorted((one, other) => leftMs(other) - leftMs(one));
    return this.#agents.find(({ id }) => id === longest?.agent)?.id ?? this.#agents[0]?.id ?? "";
  }

  crash(node: string, forMs: number): void {
    if (!this.#isNeeded(node)) this.#nodeById.get(node)?.crash(forMs);
  }

  blackout(node: string, { forMs, ms }: { forMs: number; ms: number }): void {
    if (!this.#isOutside && !this.#truth.isWhole) return;
    this.jumpClock(node, ms);
    for (const { id } of this.#coordinators) this.crash(id, id === node ? forMs : 2 * forMs);
    this.#habitat.occurrences.note("blackout");
  }

  stop(node: string, forMs: number): void {
    if (!this.#isNeeded(node)) this.#coordinators.find(({ id }) => id === node)?.stop(forMs);
  }

  pause(node: string, forMs: number): void {
    if (!this.#isNeeded(node)) this.#nodeById.get(node)?.session?.pause(forMs);
  }

  setSlow(node: string, ms: number): void {
    this.#nodeById.get(node)?.session?.setSlow(ms);
  }

  jumpClock(node: string, ms: number): void {
    const machine = this.#nodeById.get(node)?.machine;
    if (machine === undefined) return;
    machine.wallSkewMs = Math.max(-SKEW_MS_MAX, Math.min(SKEW_MS_MAX, machine.wallSkewMs + ms));
  }

  skewClocks(): void {
    for (const [id, { machine }] of this.#nodeById) this.#habitat.skew(id, machine);
  }

  startTwin(node: string): void {
    this.#agents.find(({ id }) => id === node)?.startTwin();
  }

  disconnect(link: string): void {
    this.#habitat.disconnect(link);
  }

  setJournal(condition: JournalCondition | undefined): void {
    this.#habitat.fates.condition = condition;
  }

  /** A power loss takes the end of the newest segment. */
  cutTail(count: number): void {
    const stream = this.#loseableStream();
    if (stream === undefined) return;
    const lost = Math.min(count, stream.lastSeq - this.#openedSeq(stream));
    if (lost < 1) return;
    this.#restartAndLose(() => stream.loseTail(lost));
    this.#habitat.occurrences.note("tail-cut");
  }

  /** A power loss takes the newest segment with its `Opened`. */
  loseSegment(): void {
    const stream = this.#loseableStream();
    if (stream === undefined) return;
    this.#restartAndLose(() => this.#habitat.jetStream.loseStream(stream.name));
    this.#habitat.occurrences.note("segment-lost");
  }

  /**
   * Only readers notice, so a standby rereads the journal. Inside the fault model the segment is not sealed: the
   * standby that sealed it may be the only holder of batches in flight. Nor does the leader wait for the journal: a
   * standby without the record may depose a silent leader, which must then read the record again.
   */
  flipBit(): void {
    const stream = this.#loseableStream();
    const standby = this.#coordinators.find(({ isLeading }) => !isLeading);
    if (stream === undefined || standby === undefined) return;
    const isWaiting = this.#coordinators.some(({ pending }) => pending.length > 0);
    if (!this.#isOutside && (this.#truth.isSealed || isWaiting)) return;
    const seq = stream.lastSeq - 1;
    if (seq <= this.#openedSeq(stream)) return;
    stream.flipBit(seq);
    this.#truth.lost();
    this.#habitat.occurrences.note("bit-flipped");
    standby.crash(REREAD_MS);
  }

  stopServing(node: string): void {
    for (const stream of this.#habitat.jetStream.streams) stream.stopServing(journalOf(node));
    this.#habitat.occurrences.note("reader-dead");
  }

  get isDelicate(): boolean {
    return !this.#isOutside && !this.#truth.isWhole;
  }

  isBystander(node: string): boolean {
    return this.#nodeById.has(node) && !this.#isCoordinator(node);
  }

  /** Loses records in the middle of the segment, after every coordinator has read them. */
  makeGap(count: number): void {
    const stream = this.#loseableStream();
    if (stream === undefined) return;
    const fromSeq = Math.max(this.#openedSeq(stream) + 1, stream.lastSeq - count);
    if (fromSeq >= stream.lastSeq) return;
    this.#restartAndLose(() => stream.loseMiddle(fromSeq, count));
    this.#habitat.occurrences.note("gap-made");
  }

  restartServer(): void {
    this.#habitat.jetStream.restart();
  }

  usurp(node: string, ms: number): void {
    this.#agents.find(({ id }) => id === node)?.usurp(ms);
  }

  writeForeign(): void {
    this.#habitat.writeForeign();
  }

  /** Writes into the live segment like a coordinator of a restored backup without the last batch. */
  writeBranch(): void {
    const { journal, term, idx } = this.#truth.tail;
    if (idx === 0) return;
    const prev = hashOf(Buffer.from("the last batch of the copy"));
    const header = {
      journal,
      session: "copy",
      term,
      idx: batchIndex(idx + 1),
      prev,
      at: this.#truth.state.at,
    };
    this.#habitat
      .segmentStream(this.#truth.segment)
      ?.intrude(encodeBatch(header, [JSON.stringify({ type: "TermRenewed" })]));
  }

  #restartAndLose(lose: () => void): void {
    this.#habitat.jetStream.restart();
    lose();
    this.#truth.lost();
  }

  get #isOutside(): boolean {
    return this.#habitat.profile === "outside";
  }

  /**
   * Inside the fault model the store keeps all records up to the segment's `Opened`; outside it any record may be lost.
   */
  #openedSeq(stream: SimStream): number {
    const { live } = this.#truth;
    return this.#isOutside ? 0 : (live?.position ?? stream.lastSeq);
  }

  /**
   * The newest segment. Inside the fault model only while the segment is live and every coordinator runs and holds all
   * of it.
   */
  #loseableStream(): SimStream | undefined {
    const stream = this.#habitat.newestStream;
    if (this.#isOutside) return stream;
    const isRead = stream !== undefined && stream === this.#habitat.segmentStream(this.#truth.segment);
    const isLed = this.#coordinators.some(({ isLeading }) => isLeading);
    return isRead && isLed && this.#isHeldByAll() ? stream : undefined;
  }

  /** While only coordinators hold lost records, none of them may end. */
  #isNeeded(node: string): boolean {
    return this.#isCoordinator(node) && this.isDelicate;
  }

  /** Whether the journal is whole, and every coordinator runs and holds all of it. */
  #isHeldByAll(): boolean {
    const known = this.#coordinators.map(({ knownIdx }) => knownIdx);
    return this.#truth.isWhole && known.every((idx) => idx !== undefined && idx >= this.#truth.state.idx);
  }

  #isCoordinator(node: string): boolean {
    return this.#coordinators.some(({ id }) => id === node);
  }
}
