// What faults strike in a simulated swarm, and what they spare: what nobody could bring back is not lost, and whoever
// alone could bring something back does not end. No swarm survives that, and none promises to.

import { timingOf } from "../../coordinator/timing.ts";
import { batchIndex } from "../../ids.ts";
import { encodeBatch, hashOf } from "../../journal/batch.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import type { OpenAttempt } from "../../state/state.ts";
import type { AgentParty } from "./agent-party.ts";
import type { ClientParty } from "./client-party.ts";
import type { CoordinatorParty } from "./coordinator-party.ts";
import { journalOf } from "./fault.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalCondition } from "./journal-fates.ts";
import type { JournalTruth } from "./journal-truth.ts";
import type { Link } from "./link.ts";
import type { Victims } from "./nemesis.ts";
import { RestartWatch } from "./restart-watch.ts";

type Party = CoordinatorParty | AgentParty | ClientParty;

interface VictimsDeps {
  readonly habitat: Habitat;
  readonly truth: JournalTruth;
  readonly coordinators: readonly CoordinatorParty[];
  readonly agents: readonly AgentParty[];
  readonly clients: readonly ClientParty[];
}

/** Clocks are wrong by days, and nothing is forgotten: the horizon of idempotency is in led time. */
const SKEW_MS_MAX = 72 * 3_600_000;
/** Within so long a coordinator has begun and follows, ms. */
const STARTING_MS = 3_000;
/** A leader that ended with the journal's end is started again after so many T: another leads by then. */
const RESTART_TIMEOUTS = 4;
/** There and back between two who hear each other well, ms. */
const WAYS_MS = 50;
/** Of its bound: a journal that holds more may be purged to make room. */
const FULL_SHARE = 0.85;
/** …a little more than that. */
const CRAMPED_SHARE = 0.88;
/** A smaller one may be too small for one batch of the work that piles up meanwhile. */
const CRAMPED_BYTES_MIN = 128 * 1024;

export class SwarmVictims implements Victims {
  readonly #habitat: Habitat;
  readonly #truth: JournalTruth;
  readonly #restart: RestartWatch;
  readonly #coordinators: readonly CoordinatorParty[];
  readonly #agents: readonly AgentParty[];
  readonly #partyById: ReadonlyMap<string, Party>;
  /** A standby does not hold what the journal lost. */
  #isOneBehind = false;
  #isDisplacing = false;
  /** The leader ended with what the journal lost. */
  #isHeldByFew = false;

  constructor({ habitat, truth, coordinators, agents, clients }: VictimsDeps) {
    this.#habitat = habitat;
    this.#truth = truth;
    this.#restart = new RestartWatch(habitat, truth);
    this.#coordinators = coordinators;
    this.#agents = agents;
    const parties = [...coordinators, ...agents, ...clients];
    this.#partyById = new Map(parties.map((party) => [party.id, party]));
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

  crash(party: string, forMs: number): void {
    if (!this.#isNeeded(party)) this.#partyById.get(party)?.crash(forMs);
  }

  crashCoordinators(forMs: number): void {
    for (const { id } of this.#coordinators) this.crash(id, forMs);
  }

  blackout(party: string, { forMs, ms }: { forMs: number; ms: number }): void {
    if (!this.#truth.isWhole) return;
    this.jumpClock(party, ms);
    for (const { id } of this.#coordinators) this.crash(id, id === party ? forMs : 2 * forMs);
    this.#habitat.occurrences.note("blackout");
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

  skewClocks(): void {
    for (const [id, { machine }] of this.#partyById) this.#habitat.skew(id, machine);
  }

  startTwin(party: string): void {
    this.#agents.find(({ id }) => id === party)?.startTwin();
  }

  disconnect(link: string): void {
    this.#habitat.disconnect(link);
  }

  setJournal(condition: JournalCondition | undefined): void {
    this.#habitat.fates.condition = condition;
  }

  /** The end of the journal is lost, as far as somebody who goes on still has it: what nobody has cannot come back. */
  cutTail(count: number): void {
    if (this.#isHeldByAll() && !this.#mayFork()) this.#loseTail(count, this.#coordinators);
  }

  /** The end of the journal is lost, and the leader with it. One standby holds it, and one does not, which hears it say
   *  so: it has yet to ask. */
  loseMissed(party: string): void {
    const behind = this.#coordinators.find(({ id }) => id === party);
    const leader = this.#coordinators.find(({ isLeading }) => isLeading);
    const holder = this.#coordinators.find((each) => each !== behind && each !== leader);
    if (leader === undefined || behind === leader || holder === undefined) return;
    const { idx, leaderTimeoutMs } = this.#truth.state;
    const missed = idx - (behind?.knownIdx ?? idx);
    if (missed < 1 || (holder.knownIdx ?? 0) < idx || this.#mayFork()) return;
    if (this.#mayHaveAsked(missed, leaderTimeoutMs)) return;
    if ([...this.links()].some(({ name, isLate }) => this.#isCoordinator(name) && isLate)) return;
    if (this.#loseTail(missed, [holder]) < 1) return;
    this.#isOneBehind = true;
    this.#habitat.occurrences.note("standby-left-behind");
    leader.crash(RESTART_TIMEOUTS * leaderTimeoutMs);
  }

  /** Whether a standby that missed so many records has heard nobody for so long that it may have asked who holds more,
   *  and somebody has read more since. */
  #mayHaveAsked(missed: number, timeoutMs: number): boolean {
    const { nowMs } = this.#habitat.engine;
    const askMs = timingOf(timeoutMs).askMs + WAYS_MS;
    const hasHeard = this.#truth.storedSince(nowMs - timeoutMs + askMs) > missed;
    return !hasHeard && this.#truth.storedSince(nowMs - askMs) > 0;
  }

  /** Not into what no coordinator knows to be a batch of ours: that is another journal to them. */
  loseEnd(count: number, { withLeader }: { withLeader: boolean }): boolean {
    const { stream, jetStream, occurrences } = this.#habitat;
    if (!this.#isHeldByAll() || this.#mayFork()) return false;
    const heldFromSeq = Math.min(...this.#coordinators.map((each) => each.heldFromSeq));
    const lastSeq = Math.min(heldFromSeq - 1, stream.lastSeq) - count;
    const batchSeq = this.#truth.batchSeqUntil(lastSeq) ?? 0;
    if (batchSeq < stream.firstSeq || !this.#isUnbroken(batchSeq, lastSeq)) return false;
    jetStream.restart();
    stream.loseTail(stream.lastSeq - lastSeq);
    this.#truth.lostEnd(lastSeq);
    occurrences.note("end-lost");
    const leader = this.#coordinators.find(({ isLeading }) => isLeading);
    if (!withLeader || leader === undefined) return true;
    leader.crash(RESTART_TIMEOUTS * this.timeoutMs);
    this.#isHeldByFew = true;
    return true;
  }

  stopServing(party: string): void {
    this.#habitat.stream.stopServing(journalOf(party));
    this.#habitat.occurrences.note("reader-dead");
  }

  /** Standbys read two dead records, and stand behind them. Both are lost before the leader has met them, so that its
   *  next batch stands where the first one stood. One more dead record takes the place of the second, and the journal
   *  ends where the standbys stand. */
  displace(): void {
    const { stream, engine } = this.#habitat;
    const leader = this.#coordinators.find(({ isLeading }) => isLeading);
    if (leader === undefined || !this.#isHeldByAll() || this.#mayFork() || stream.fullShare > FULL_SHARE)
      return;
    const { lastSeq } = stream;
    this.writeAlien();
    this.writeAlien();
    this.#isDisplacing = true;
    engine.after(WAYS_MS / 2, "displaced", () => {
      const mayLose = stream.lastSeq === lastSeq + 2 && this.#isHeldByAll() && leader.isLeading;
      if (!mayLose) {
        this.#isDisplacing = false;
        return;
      }
      this.#habitat.jetStream.restart();
      stream.loseTail(2);
      this.#truth.lostTail(stream.lastSeq);
      this.#afterNextBatch(lastSeq, leader);
    });
  }

  /** Looks until the leader's next batch stands behind `seq`, not for longer than T. */
  #afterNextBatch(seq: number, leader: CoordinatorParty): void {
    const { stream, engine, occurrences } = this.#habitat;
    const { leaderTimeoutMs } = this.#truth.state;
    const sinceMs = engine.nowMs;
    const look = () => {
      const isThere = stream.lastSeq > seq;
      if (!isThere && engine.nowMs - sinceMs < leaderTimeoutMs)
        return void engine.after(1, "displaced", look);
      this.#isDisplacing = false;
      if (stream.lastSeq !== seq + 1 || !this.#truth.isWhole || !leader.isLeading) return;
      this.writeAlien();
      occurrences.note("dead-record-displaced");
      leader.crash(RESTART_TIMEOUTS * leaderTimeoutMs);
    };
    look();
  }

  get isDelicate(): boolean {
    if (this.#truth.isWhole) this.#isOneBehind = false;
    return this.#isOneBehind || this.#isDisplacing;
  }

  get isHeldByFew(): boolean {
    if (this.#truth.isWhole) this.#isHeldByFew = false;
    return this.#isHeldByFew;
  }

  isBystander(party: string): boolean {
    return this.#partyById.has(party) && !this.#isCoordinator(party);
  }

  /** Records within are lost that every coordinator has read: from what it made of them it can save the swarm. Where
   *  nobody leads, dead ones at the end are none of those: only a leader goes on behind what it has not read. */
  makeHole(count: number): void {
    const { stream, jetStream, occurrences } = this.#habitat;
    const fromSeq = Math.max(stream.firstSeq + 1, stream.lastSeq - count);
    if (!this.#isHeldByAll() || this.#mayFork() || fromSeq >= stream.lastSeq) return;
    const isLed = this.#coordinators.some(({ isLeading }) => isLeading);
    if (!isLed && !this.#truth.endsWithBatch) return;
    jetStream.restart();
    stream.loseMiddle(fromSeq, count);
    occurrences.note("hole-made");
    this.#truth.lostMiddle(stream.lastSeq);
  }

  /** Only while an older one, and the journal behind it, lead as far: else what it stands for would be gone. What is to
   *  be purged by the record leads nowhere: whoever put it there has read the snapshot that stands for it. Nor does
   *  what a full journal may be purged of by who has just read the newest: all that no older one reaches into. */
  rotSnapshot(): void {
    const { snapshotStream, occurrences, stream, fates } = this.#habitat;
    if (!this.#truth.isWhole) return;
    const { idx, auditFirstIdx } = this.#truth.state;
    const [newest, ...others] = this.#restart.wholeSnapshots().filter(({ position }) => position.idx <= idx);
    const [place] = newest?.chunks.at(-1) ?? [];
    if (newest === undefined || place === undefined) return;
    // A manifest may be stored twice: its copy has the same chunks.
    const isOther = ({ chunks }: Manifest) => chunks.every(([other]) => other !== place);
    const isFull = stream.fullShare > FULL_SHARE || fates.condition?.isFull === true;
    // Of an end that was lost, only the snapshot that was made for it leads on.
    const isOnLine = ({ position: { idx: olderIdx, seq } }: Manifest) =>
      newest.position.idx - olderIdx <= newest.position.seq - seq;
    const leadsOn = (manifest: Manifest) => isOnLine(manifest) && leadsTo(manifest);
    const leadsTo = ({ position }: Manifest) =>
      position.idx >= auditFirstIdx - 1 &&
      (!isFull || position.seq >= stream.firstSeq) &&
      this.#isUnbroken(position.seq + 1, newest.position.seq);
    if (!others.some((other) => isOther(other) && leadsOn(other))) return;
    snapshotStream.rot(place);
    this.#restart.rotted(newest);
    occurrences.note("snapshot-rotten");
  }

  /** Not while something is to come back, which might find no room then. */
  boundJournal(bytes: number): void {
    if (this.#truth.isWhole) this.#habitat.stream.bound(bytes);
  }

  crampJournal(): void {
    const { stream } = this.#habitat;
    this.boundJournal(Math.max(stream.usage.bytes / CRAMPED_SHARE, CRAMPED_BYTES_MIN));
  }

  restartServer(): void {
    this.#habitat.jetStream.restart();
  }

  usurp(party: string, ms: number): void {
    this.#agents.find(({ id }) => id === party)?.usurp(ms);
  }

  /** Not where a lost end is to come back: what it displaced would be lost for good. */
  writeAlien(): void {
    if (this.#truth.isWhole) this.#habitat.writeAlien();
  }

  /** As a coordinator would that went on from a backup which lacks the last batch. */
  writeOtherLine(): void {
    const { journal, term, idx } = this.#truth.position;
    if (!this.#truth.isWhole || idx === 0) return;
    const prev = hashOf(Buffer.from("what stood there in the copy"));
    const header = { journal, term, idx: batchIndex(idx + 1), prev, at: this.#truth.state.at };
    this.#habitat.stream.intrude(encodeBatch(header, [JSON.stringify({ type: "TermRenewed" })]));
  }

  /** Whether the journal has every record from one to another. */
  #isUnbroken(fromSeq: number, toSeq: number): boolean {
    for (let seq = fromSeq; seq <= toSeq; seq += 1)
      if (this.#habitat.stream.at(seq) === undefined) return false;
    return true;
  }

  /** @returns how many were lost: no more than `holders` have read since they began, or began anew at a snapshot, who
   *  hold only the newest of what was there before, and take the rest for lost */
  #loseTail(count: number, holders: readonly CoordinatorParty[]): number {
    const { stream, jetStream, occurrences } = this.#habitat;
    if (!this.#truth.isWhole) return 0;
    const bornMs = Math.max(...holders.map(({ life }) => life?.bornMs ?? 0));
    const held = this.#truth.storedSince(bornMs + STARTING_MS);
    const heldFromSeq = Math.max(stream.firstSeq, ...holders.map((holder) => holder.heldFromSeq));
    const lost = Math.min(count, held, stream.lastSeq - heldFromSeq);
    if (lost < 1) return 0;
    jetStream.restart();
    stream.loseTail(lost);
    occurrences.note("tail-cut");
    this.#truth.lostTail(stream.lastSeq);
    return lost;
  }

  /** While the journal lacks what coordinators hold, or nobody could begin, none of them may end: it would be lost with
   *  them. */
  #isNeeded(party: string): boolean {
    return this.#isCoordinator(party) && (!this.#truth.isWhole || !this.#restart.isPossible);
  }

  /** Whether a leader that was deposed has not heard of its successor: where it hears nobody for 2·T, it writes in
   *  the place of what is lost (docs/adr/0012-a-journal-that-loses-records.md). */
  #mayFork(): boolean {
    const { leader } = this.#truth.state;
    return this.#coordinators.some(({ id, isLeading }) => isLeading && id !== leader);
  }

  /** Whether every coordinator runs on and has the journal to its end, and it lacks nothing. */
  #isHeldByAll(): boolean {
    const known = this.#coordinators.map(({ knownIdx }) => knownIdx);
    return this.#truth.isWhole && known.every((idx) => idx !== undefined && idx >= this.#truth.state.idx);
  }

  #isCoordinator(party: string): boolean {
    return this.#coordinators.some(({ id }) => id === party);
  }
}
