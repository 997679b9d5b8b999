// A whole swarm in virtual time: its parties, what they do, and what happens to them. Runs one seed from its beginning
// through its faults to the quiet after them, when everything accepted has to end.

import type { EventOf } from "../../core/event.ts";
import type { OpenAttempt } from "../../core/state.ts";
import { batchIndex } from "../../ids.ts";
import { encodeBatch, hashOf } from "../../journal/batch.ts";
import { limits } from "../../limits.ts";
import { checkHistory } from "../history/check-history.ts";
import { Random } from "../random.ts";
import { AgentParty } from "./agent-party.ts";
import { ClientParty } from "./client-party.ts";
import { CoordinatorParty } from "./coordinator-party.ts";
import type { Fault } from "./fault.ts";
import { Habitat, type PartyLog } from "./habitat.ts";
import { HandlerWatch } from "./handler-watch.ts";
import type { JournalCondition } from "./journal-fates.ts";
import { JournalTruth } from "./journal-truth.ts";
import type { Life, MachineClock } from "./life.ts";
import type { Link } from "./link.ts";
import { journalOf, Nemesis, SERVER, type Victims } from "./nemesis.ts";
import { Operator } from "./operator.ts";
import type { Workload } from "./workload.ts";

interface Party {
  readonly life: Life | undefined;
  readonly machine: MachineClock;
  start(): void;
  crash(forMs: number): void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly workload: Workload;
  readonly schedule: readonly Fault[];
  /** When everything heals, virtual ms. */
  readonly untilMs: number;
  readonly log?: PartyLog | undefined;
}

/** Once all is well, everything accepted ends within so long: the longest back-off of a task, and a term or two. */
const LIVENESS_MS = 8 * 60_000;
/** …and then everybody has heard of everything, ms. */
const SETTLING_MS = 20_000;
/** Clocks are wrong by days, and nothing is forgotten: the horizon of idempotency is in led time. */
const SKEW_MS_MAX = 72 * 3_600_000;
/** H, and a heartbeat or two, ms. */
const LOST_MS = limits.agentLostMs + 3 * limits.heartbeatMs;
/** Within so long a coordinator has begun and follows, ms. */
const STARTING_MS = 3_000;
/** A leader that ended with the journal's end is started again after so many T: another leads by then. */
const RESTART_TIMEOUTS = 4;
/** How often the states of coordinators are compared: it costs as much as a snapshot. */
const READING_MS = 15_000;

export class World implements Victims {
  readonly habitat: Habitat;
  readonly truth: JournalTruth;
  readonly #options: WorldOptions;
  readonly #coordinators: readonly CoordinatorParty[];
  readonly #agents: readonly AgentParty[];
  readonly #clients: readonly ClientParty[];
  readonly #operator: Operator;
  readonly #partyById: ReadonlyMap<string, Party>;
  readonly #nemesis: Nemesis;
  readonly #handlers: HandlerWatch;
  /** A standby does not hold what the journal lost. */
  #isOneBehind = false;

  constructor(options: WorldOptions) {
    const { seed, workload } = options;
    const random = new Random(`torture/${seed}/world`);
    this.#options = options;
    this.habitat = new Habitat(random.split("habitat"), options.log);
    this.truth = new JournalTruth(this.habitat);
    this.truth.onLapsed = (lapsed, decidedMs) => this.#requireLost(lapsed, decidedMs);
    this.#handlers = new HandlerWatch(this.habitat);
    this.truth.onLimitReached = (closed) => this.#handlers.limitReached(closed);
    this.#coordinators = workload.coordinators.map(
      (character) => new CoordinatorParty(character, this.habitat, this.truth),
    );
    this.#agents = workload.agents.map(
      (character) =>
        new AgentParty(character, {
          habitat: this.habitat,
          watch: this.#handlers,
          random: random.split(`handlers/${character.id}`),
        }),
    );
    this.#clients = workload.clients.map((character) => new ClientParty(character, this.habitat));
    this.#operator = new Operator(this.habitat, workload);
    this.#nemesis = new Nemesis(this.habitat.engine, this);
    const parties = [...this.#coordinators, ...this.#agents, ...this.#clients];
    this.#partyById = new Map(parties.map((party) => [party.id, party]));
  }

  /** Runs the seed to its end; what was found stands in the habitat. @throws the reason of `signal` */
  async run(signal?: AbortSignal): Promise<void> {
    const { workload, schedule, untilMs } = this.#options;
    const { engine } = this.habitat;
    for (const party of this.#partyById.values()) party.start();
    for (const deed of workload.deeds)
      engine.after(deed.atMs, deed.does, () => this.#clients.find(({ id }) => id === deed.client)?.do(deed));
    this.#nemesis.follow(schedule);
    this.#readStates();
    await this.#runUntil(untilMs, () => false, signal);
    if (this.#hasFound()) return;
    this.#heal();
    await this.#runUntil(untilMs + LIVENESS_MS, () => this.#isDone(), signal);
    if (this.#hasFound()) return;
    if (!this.#isDone()) return this.#noteUndone();
    await this.#runUntil(engine.nowMs + SETTLING_MS, () => false, signal);
    if (this.#hasFound()) return;
    this.#noteUntold();
    this.#noteKept();
    for (const coordinator of this.#coordinators) coordinator.read();
    this.#judgeHistory();
  }

  // --- what the nemesis does ------------------------------------------------------------------------

  links(): Iterable<Link> {
    return this.habitat.links();
  }

  leader(): string {
    const { coordinators } = this.#options.workload;
    return this.#coordinators.find(({ isLeading }) => isLeading)?.id ?? coordinators[0]?.id ?? "";
  }

  busiest(): string {
    const { agentById, taskById, at } = this.truth.state;
    const attempts = [...agentById.values()].flatMap(({ online, open }) =>
      online ? [...open.values()] : [],
    );
    const leftMs = ({ task, assignedAt }: OpenAttempt) =>
      assignedAt + (taskById.get(task)?.spec.timeoutMs ?? 0) - at;
    const [longest] = attempts.toSorted((one, other) => leftMs(other) - leftMs(one));
    return this.#agents.find(({ id }) => id === longest?.agent)?.id ?? this.#agents[0]?.id ?? "";
  }

  crash(party: string, forMs: number): void {
    if (!this.#isNeeded(party)) this.#partyById.get(party)?.crash(forMs);
  }

  blackout(party: string, { forMs, ms }: { forMs: number; ms: number }): void {
    if (!this.truth.isWhole) return;
    this.jumpClock(party, ms);
    for (const { id } of this.#coordinators) this.crash(id, id === party ? forMs : 2 * forMs);
    this.habitat.occurrences.note("blackout");
  }

  stop(party: string, forMs: number): void {
    if (!this.#isNeeded(party)) this.#coordinators.find(({ id }) => id === party)?.stop(forMs);
  }

  pause(party: string, forMs: number): void {
    if (!this.#isNeeded(party)) this.#partyById.get(party)?.life?.pause(forMs);
  }

  setSlow(party: string, ms: number): void {
    this.#partyById.get(party)?.life?.setSlow(ms);
  }

  jumpClock(party: string, ms: number): void {
    const machine = this.#partyById.get(party)?.machine;
    if (machine === undefined) return;
    machine.wallSkewMs = Math.max(-SKEW_MS_MAX, Math.min(SKEW_MS_MAX, machine.wallSkewMs + ms));
  }

  startTwin(party: string): void {
    this.#agents.find(({ id }) => id === party)?.startTwin();
  }

  disconnect(link: string): void {
    this.habitat.disconnect(link);
  }

  setJournal(condition: JournalCondition | undefined): void {
    this.habitat.fates.condition = condition;
  }

  /** The end of the journal is lost, as far as somebody who goes on still has it: what nobody has cannot come back. */
  cutTail(count: number): void {
    if (this.#isHeldByAll() && !this.#mayFork()) this.#loseTail(count, this.#coordinators);
  }

  /** @returns how many were lost: no more than `holders` have read since they began, or began anew at a snapshot, who
   *  hold only the newest of what was there before, and take the rest for lost */
  #loseTail(count: number, holders: readonly CoordinatorParty[]): number {
    const { stream, jetStream, occurrences } = this.habitat;
    if (!this.truth.isWhole) return 0;
    const bornMs = Math.max(...holders.map(({ life }) => life?.bornMs ?? 0));
    const held = this.truth.storedSince(bornMs + STARTING_MS);
    const heldFromSeq = Math.max(stream.firstSeq, ...holders.map((holder) => holder.heldFromSeq));
    const lost = Math.min(count, held, stream.lastSeq - heldFromSeq);
    if (lost < 1) return 0;
    jetStream.restart();
    stream.loseTail(lost);
    occurrences.note("tail-cut");
    this.truth.lostTail(stream.lastSeq);
    return lost;
  }

  /** The end of the journal is lost, and the leader with it. One standby holds it, and one does not. */
  loseMissed(link: string): void {
    const behind = this.#coordinators.find(({ id }) => link === journalOf(id));
    const leader = this.#coordinators.find(({ isLeading }) => isLeading);
    const holder = this.#coordinators.find((each) => each !== behind && each !== leader);
    if (leader === undefined || behind === leader || holder === undefined) return;
    const { idx, leaderTimeoutMs } = this.truth.state;
    const missed = idx - (behind?.knownIdx ?? idx);
    if (missed < 1 || (holder.knownIdx ?? 0) < idx || this.#mayFork()) return;
    if (this.#loseTail(missed, [holder]) < 1) return;
    this.#isOneBehind = true;
    this.habitat.occurrences.note("standby-left-behind");
    leader.crash(RESTART_TIMEOUTS * leaderTimeoutMs);
  }

  get isDelicate(): boolean {
    if (this.truth.isWhole) this.#isOneBehind = false;
    return this.#isOneBehind;
  }

  isBystander(party: string): boolean {
    return [...this.#agents, ...this.#clients].some(({ id }) => id === party);
  }

  /** Records within are lost that every coordinator has read: from what it made of them it can save the swarm. */
  makeHole(count: number): void {
    const { stream, jetStream, occurrences } = this.habitat;
    const fromSeq = Math.max(stream.firstSeq + 1, stream.lastSeq - count);
    if (!this.#isHeldByAll() || fromSeq >= stream.lastSeq) return;
    jetStream.restart();
    stream.loseMiddle(fromSeq, count);
    occurrences.note("hole-made");
    this.truth.lostMiddle(stream.lastSeq);
  }

  restartServer(): void {
    this.habitat.jetStream.restart();
  }

  usurp(party: string, ms: number): void {
    this.#agents.find(({ id }) => id === party)?.usurp(ms);
  }

  /** Not where a lost end is to come back: what it displaced would be lost for good. */
  writeAlien(): void {
    if (this.truth.isWhole) this.habitat.stream.intrude(Buffer.from("not a batch of ours"));
  }

  /** As a coordinator would that went on from a backup which lacks the last batch. */
  writeOtherLine(): void {
    const { journal, term, idx } = this.truth.position;
    if (!this.truth.isWhole || idx === 0) return;
    const prev = hashOf(Buffer.from("what stood there in the copy"));
    const header = { journal, term, idx: batchIndex(idx + 1), prev, at: this.truth.state.at };
    this.habitat.stream.intrude(encodeBatch(header, [JSON.stringify({ type: "TermRenewed" })]));
  }

  /** While the journal lacks what coordinators hold, none of them may end: it would be lost with them. */
  #isNeeded(party: string): boolean {
    return !this.truth.isWhole && this.#coordinators.some(({ id }) => id === party);
  }

  /** Whether a leader that was deposed has not heard of its successor: where it hears nobody for 2·T, it writes in
   *  the place of what both lost (docs/adr/0013-a-leader-out-of-touch-listens-first.md). */
  #mayFork(): boolean {
    const { leader } = this.truth.state;
    return this.#coordinators.some(({ id, isLeading }) => isLeading && id !== leader);
  }

  /** Whether every coordinator runs on and has the journal to its end, and it lacks nothing. */
  #isHeldByAll(): boolean {
    const known = this.#coordinators.map(({ knownIdx }) => knownIdx);
    return this.truth.isWhole && known.every((idx) => idx !== undefined && idx >= this.truth.state.idx);
  }

  // --- the run --------------------------------------------------------------------------------------

  #runUntil(untilMs: number, isEnough: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    const afterEvent = () => {
      this.truth.readOn();
      return this.#hasFound() || isEnough();
    };
    return this.habitat.engine.run(untilMs, afterEvent, signal);
  }

  #hasFound(): boolean {
    return this.habitat.findings.length > 0;
  }

  /** Nobody counts as lost whose messages could be heard, whatever became of leaders meanwhile. What an ended process
   *  was is lost, also while another asks to join in its place: that may wait for the journal, and comes second. What
   *  is heard of one once that is decided comes too late, though the journal takes the batch only then. */
  #requireLost({ agent, incarnation }: EventOf<"AgentLeft">, decidedMs: number): void {
    if (this.#agents.find(({ id }) => id === agent)?.isRunning(incarnation) !== true) return;
    const hearers = this.#coordinators.map(({ id }) => id);
    const parties = [agent, ...hearers, SERVER];
    const touchedMs = Math.max(...parties.map((party) => this.#nemesis.touchedMs(party, decidedMs)));
    if (decidedMs - touchedMs < LOST_MS) return;
    this.habitat.found(
      "the-living-are-not-lost",
      `${agent} counts as lost, and nothing kept it from being heard`,
    );
  }

  /** Compares now and then what coordinators have made of the journal, leaders and standbys. */
  #readStates(): void {
    this.habitat.engine.after(READING_MS, "reading", () => {
      for (const coordinator of this.#coordinators) coordinator.read();
      this.#readStates();
    });
  }

  #judgeHistory(): void {
    for (const { life } of this.#partyById.values()) life?.kill(); // what is open is recorded as unanswered
    const { history: observations, readings } = this.habitat;
    const violations = checkHistory(
      { observations, readings, journal: this.truth.records },
      { mustAllHaveEnded: true },
    );
    for (const { promise, checker, sentence } of violations)
      this.habitat.found(`${promise} ${checker}`, sentence);
  }

  #heal(): void {
    this.habitat.hasHealed = true;
    for (const agent of this.#agents) agent.heal();
    this.#operator.start();
  }

  /** Not while a client asks again for tasks that nobody accepted yet: they may wait for longer than settling takes. */
  #isDone(): boolean {
    const isSubmitting = () => this.#clients.some(({ submitting }) => submitting.length > 0);
    return this.#operator.isDone && this.truth.state.taskById.size === 0 && !isSubmitting();
  }

  #noteUndone(): void {
    const { taskById } = this.truth.state;
    const some = [...taskById.values()]
      .slice(0, 5)
      .map(({ spec, state, attempt }) => `${spec.id} ${state}#${attempt}`);
    const unanswered = [
      ...(this.#operator.isDone ? [] : [`the operator got no answer to: ${this.#operator.waitsFor}`]),
      ...this.#clients
        .filter(({ submitting }) => submitting.length > 0)
        .map(({ id, submitting }) => `${id} still submits ${submitting.slice(0, 5).join(", ")}`),
    ];
    const undone = [`${taskById.size} tasks have not ended: ${some.join(", ")}`, ...unanswered];
    this.habitat.found(
      "everything-accepted-ends",
      `${LIVENESS_MS / 1_000} s after all was well, ${undone.join("; ")}`,
    );
  }

  /** What has ended takes no place any more: its agent knows, and the leader knows that it knows. */
  #noteKept(): void {
    for (const { id, online, open } of this.truth.state.agentById.values())
      for (const { task, attempt, state } of online ? open.values() : [])
        this.habitat.found(
          "places-are-given-back",
          `attempt ${attempt} of ${task}, which has ended, takes a place of ${id} and is ${state}`,
        );
  }

  #noteUntold(): void {
    for (const { id, awaited } of this.#clients)
      for (const task of awaited)
        this.habitat.found("endings-are-told", `${id} still waits for ${task}, which has ended`);
  }
}
