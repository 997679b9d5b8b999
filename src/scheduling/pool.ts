// The agents of one kind, for tasks of one role and with the same needs, or of one agent type after a downgrade. Ranks
// agents that may have a task, and counts the others by reason. Kept from round to round by agent-index.ts.
//
// A pool with needs holds the agents with the labels alone, for labels last as long as a contender. So thousands of
// pools cost as much as their agents are many, and not thousands of times the swarm. A pool for projects that grants
// name holds the agents of the permitted groups alone, likewise.

import type { AgentId, Instant, Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Access } from "../state/grant.ts";
import { meetsNeeds, type Needs } from "../state/needs.ts";
import type { Policy } from "../state/policy.ts";
import { type DecidedBy, type IneligibleReason, ineligibleReasons, type Receipt } from "../state/receipt.ts";
import type { AgentRow, SuccessRecord, SwarmState } from "../state/state.ts";
import { type Expectation, epochOf, expectationOf, qualityOf } from "../state/success-rate.ts";
import { Candidate, type Contender, type Ranks } from "./candidate.ts";
import { CandidateHeap } from "./candidate-heap.ts";
import {
  isCalled,
  isLive,
  type PeerTier,
  type Standing,
  standingInPool,
  startsAtOnce,
  tierOf,
} from "./eligibility.ts";
import { holdAt, lastHoldOn } from "./hold.ts";

/** The candidates of one task, as far as a receipt shows them. */
export interface Ranking {
  /** Best first, at most `limits.receiptCandidatesMax`; empty when no agent may have the task. */
  readonly candidates: readonly Candidate[];
  readonly feasible: number;
  readonly decidedBy: DecidedBy;
}

/** Task-running agents of the whole swarm, by the two filters that depend on the agent alone. */
export interface Census {
  offline: number;
  draining: number;
  /** All others: live. */
  live: number;
}

export interface PoolInit {
  readonly state: SwarmState;
  readonly policy: Policy;
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly needs: Needs | undefined;
  readonly agentType: string | undefined;
  readonly access: Access | undefined;
  /** The pool for the same kind, role and needs, for any project; absent: this pool. */
  readonly ofAnyProject: Pool | undefined;
  readonly census: Census;
  /** Live agents of the kind, with or without the labels. */
  readonly liveOf: () => number;
  /** Whether the rate of an agent type is used up in this round, reserved tokens included. */
  readonly isLimited: (agentType: string | undefined) => boolean;
}

type Counts = Record<Standing, number>;

const nobodyRanked: Ranking = { candidates: [], feasible: 0, decidedBy: "only" };
const everybody = () => true;

export class Pool implements Ranks {
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly needs: Needs | undefined;
  /** The only agent type that may have a task; undefined: any type. */
  readonly agentType: string | undefined;
  /** The groups that may have a task; undefined: any group. */
  readonly access: Access | undefined;
  readonly #init: PoolInit;
  readonly #candidateById = new Map<AgentId, Candidate>();
  readonly #feasible = new CandidateHeap([]);
  readonly #probes: Candidate[] = [];
  /** Suspended candidates: their standing changes with time, and with the other agents. */
  readonly #suspended = new Set<Candidate>();
  readonly #counts = emptyCounts();
  /** Live agents of the role and type, by tier. */
  readonly #tiers: Record<PeerTier, number> = { able: 0, suspended: 0, held: 0 };
  #at = 0 as Instant;
  #epochAt = -1;
  #expectation: Expectation = expectationOf(undefined, 0 as Instant);
  #shownCounts: Receipt["ineligible"] | undefined;

  constructor(init: PoolInit) {
    this.kind = init.kind;
    this.role = init.role;
    this.needs = init.needs;
    this.agentType = init.agentType;
    this.access = init.access;
    this.#init = init;
  }

  /** Adds an agent that serves the kind, if it has the labels, and a grant for the project. */
  admit(contender: Contender): void {
    const { labels, group } = contender.agent;
    const isLabelled = this.needs === undefined || meetsNeeds(labels, this.needs);
    if (!isLabelled || this.access?.admits(group) === false) {
      this.#shownCounts = undefined;
      return;
    }
    const candidate = new Candidate(contender, this, this.#init.policy);
    contender.candidates.push(candidate);
    this.#candidateById.set(contender.agent.id, candidate);
    this.#assess(candidate);
    this.#stand(candidate, undefined);
  }

  /** Takes all candidates from their agents, before the pool is dropped. */
  disband(): void {
    for (const candidate of this.#candidateById.values()) {
      const { candidates } = candidate.contender;
      candidates.splice(candidates.indexOf(candidate), 1);
    }
  }

  dismiss(candidate: Candidate): void {
    this.#candidateById.delete(candidate.agent.id);
    this.#withdraw(candidate);
    this.#suspended.delete(candidate);
    this.#counts[candidate.standing] -= 1;
    this.#shownCounts = undefined;
    this.#countAs(candidate, "none");
  }

  /** Notes a change of the agent's row. */
  renew(candidate: Candidate): void {
    if ((this.#recordOf(candidate)?.attempts ?? 0) !== candidate.attemptsAssessed) this.#assess(candidate);
    this.#stand(candidate, candidate.standing);
  }

  /** Begins a round at `at`: applies the changes of time. Rates and backlogs follow. */
  begin(at: Instant): void {
    this.#at = at;
    if (this.#epochAt !== epochOf(at)) this.#beginEpoch(at);
  }

  /** Applies changes of time and of other agents, once all changes are reported. */
  settle(): void {
    for (const candidate of this.#suspended) this.#stand(candidate, candidate.standing);
  }

  /** Notes that an agent became full in this round, or is being probed. */
  update(candidate: Candidate): void {
    this.#stand(candidate, candidate.standing);
  }

  /** Whether any agent here may have a task, ignoring failures of the task. */
  get isOpen(): boolean {
    return this.#feasible.size + this.#probes.length > 0;
  }

  /** Whether all live agents here are on hold. Assignments do not change the answer. */
  get isOnHold(): boolean {
    return this.#bestTier === "held" && this.#tiers.held > 0;
  }

  /**
   * Agents excluded by the task's failures: all agents that failed the task, or none when no other agent could have the
   * task.
   */
  excludedByFailure(avoid: readonly AgentId[]): readonly AgentId[] {
    if (avoid.length === 0) return avoid;
    const avoided = avoid.filter((id) => this.#isPeer(this.#candidateById.get(id))).length;
    return this.#peers > avoided ? avoid : [];
  }

  /**
   * Ranks the agents that may have a task. A probe goes first, because otherwise it would never be made while other
   * agents have room. A task's last attempt is risked with a probe only where no other agent may have the task.
   *
   * @param excluded agents that failed the task, where the exclusion holds
   * @param preferred agent of the task's affinity, which goes before all others if it may have the task and would start
   *   it now
   */
  rank(
    excluded: readonly AgentId[],
    isLastAttempt: boolean,
    preferred: AgentId | undefined = undefined,
  ): Ranking {
    const ranking = this.#rank(excluded, isLastAttempt);
    if (preferred === undefined || ranking.candidates.length === 0) return ranking;
    const favourite = this.#candidateById.get(preferred);
    if (favourite?.standing !== "feasible" || excluded.includes(preferred)) return ranking;
    if (!startsAtOnce(favourite.agent)) return ranking;
    if (favourite.isStale) {
      favourite.refresh();
      this.#feasible.restore(favourite);
    }
    const others = ranking.candidates.filter((candidate) => candidate !== favourite);
    return {
      candidates: [favourite, ...others].slice(0, limits.receiptCandidatesMax),
      feasible: ranking.feasible,
      decidedBy: others.length === 0 ? ranking.decidedBy : "affinity",
    };
  }

  #rank(excluded: readonly AgentId[], isLastAttempt: boolean): Ranking {
    const isWanted = excluded.length === 0 ? everybody : (of: Candidate) => !excluded.includes(of.agent.id);
    const regular = this.#feasible.best(limits.receiptCandidatesMax, isWanted);
    // An assignment of another pool may have changed their order, and a pool may be made within a round.
    if (this.#probes.length > 1) this.#probes.sort((a, b) => this.#compareProbes(a, b));
    const probes = this.#probes.length === 0 ? this.#probes : this.#probes.filter(isWanted);
    for (const probe of probes) if (probe.isStale) probe.refresh();
    const isProbing = probes.length > 0 && !(isLastAttempt && regular.length > 0);
    if (regular.length + probes.length === 0) return nobodyRanked;
    return {
      candidates: probes.length === 0 ? regular : ranked(isProbing, probes, regular),
      feasible: this.#feasible.size + this.#probes.length - this.#excludedCount(excluded),
      decidedBy: isProbing || (probes.length > 0 && regular.length === 1) ? "probe" : decidedBy(regular),
    };
  }

  /** Number of agents by failed filter, each counted under the first. Valid until the next assignment. */
  ineligible(excluded: readonly AgentId[]): Receipt["ineligible"] {
    this.#shownCounts ??= this.#shown();
    const excludedCount = this.#excludedCount(excluded);
    if (excludedCount === 0) return this.#shownCounts;
    return { ...this.#shownCounts, "failed-this-task": excludedCount };
  }

  /** Notes that agents elsewhere in the swarm came or went: the counts include all agents. */
  censusChanged(): void {
    this.#shownCounts = undefined;
  }

  /** Candidates that are online and do not drain. */
  get #live(): number {
    return this.#candidateById.size - this.#counts.draining - this.#counts.offline;
  }

  get #peers(): number {
    return this.#tiers[this.#bestTier];
  }

  get #bestTier(): PeerTier {
    const { able, suspended } = this.#tiers;
    return able > 0 ? "able" : suspended > 0 ? "suspended" : "held";
  }

  get #suspensionsHold(): boolean {
    return this.#tiers.able > 0;
  }

  #isPeer(candidate: Candidate | undefined): boolean {
    return candidate !== undefined && candidate.countedAs === this.#bestTier;
  }

  /** Computes the quality from the agent's record and the swarm's expectation. */
  #assess(candidate: Candidate): void {
    const record = this.#recordOf(candidate);
    candidate.attemptsAssessed = record?.attempts ?? 0;
    candidate.assess(qualityOf(record, this.#expectation, this.#init.policy.speedExponent, this.#at));
  }

  /** An existing record stays: an agent forgets only kinds outside its present kinds. */
  #recordOf(candidate: Candidate): SuccessRecord | undefined {
    candidate.record ??= candidate.agent.recordByKind.get(this.kind);
    return candidate.record;
  }

  #beginEpoch(at: Instant): void {
    this.#epochAt = epochOf(at);
    this.#expectation = expectationOf(this.#init.state.recordByKind.get(this.kind), at);
    for (const candidate of this.#candidateById.values()) {
      this.#assess(candidate);
      candidate.refresh();
    }
    this.#feasible.reorder();
  }

  /** Moves a candidate to the list of its present standing. @param before undefined for a new candidate */
  #stand(candidate: Candidate, before: Standing | undefined): void {
    this.#countPeer(candidate);
    const now = this.#standingOf(candidate.agent);
    candidate.standing = now;
    if (before === "feasible" && now === "feasible") {
      candidate.refresh();
      this.#feasible.restore(candidate);
      return;
    }
    if (before === now) return;
    if (before !== undefined) {
      this.#counts[before] -= 1;
      if (before === "feasible" || before === "probe") this.#withdraw(candidate, before);
    }
    this.#counts[now] += 1;
    this.#shownCounts = undefined;
    candidate.refresh();
    if (now === "feasible") this.#feasible.push(candidate);
    if (now === "probe") this.#probes.push(candidate);
  }

  #withdraw(candidate: Candidate, standing = candidate.standing): void {
    if (standing === "feasible") this.#feasible.remove(candidate);
    if (standing === "probe") this.#probes.splice(this.#probes.indexOf(candidate), 1);
  }

  #standingOf(agent: AgentRow): Standing {
    return standingInPool(agent, this, {
      suspensionsHold: this.#suspensionsHold,
      isRateLimited: this.#init.isLimited(agent.agentType),
      hold: holdAt(this.#init.state, agent, this.kind),
      servesKind: true,
      at: this.#at,
    });
  }

  /** Updates the counts of peers, and the set of suspended candidates. */
  #countPeer(candidate: Candidate): void {
    const { agent } = candidate;
    const isSuspended = this.#isSuspended(agent);
    if (isSuspended) this.#suspended.add(candidate);
    else if (this.#suspended.size > 0) this.#suspended.delete(candidate);
    if (!isLive(agent) || !isCalled(agent, this)) this.#countAs(candidate, "none");
    else
      this.#countAs(
        candidate,
        tierOf(agent, this.kind, holdAt(this.#init.state, agent, this.kind) !== undefined),
      );
  }

  #isSuspended({ suspensionByKind }: AgentRow): boolean {
    return suspensionByKind.size > 0 && suspensionByKind.has(this.kind);
  }

  #countAs(candidate: Candidate, now: Candidate["countedAs"]): void {
    const before = candidate.countedAs;
    if (before === now) return;
    candidate.countedAs = now;
    if (before !== "none") this.#tiers[before] -= 1;
    if (now !== "none") this.#tiers[now] += 1;
  }

  /** Agents that would pass except for the task's failures. */
  #excludedCount(excluded: readonly AgentId[]): number {
    let count = 0;
    for (const id of excluded) {
      const standing = this.#candidateById.get(id)?.standing;
      if (standing === "feasible" || standing === "probe") count += 1;
    }
    return count;
  }

  #shown(): Receipt["ineligible"] {
    const shown: Partial<Record<IneligibleReason, number>> = {};
    for (const reason of ineligibleReasons) {
      const count = this.#countOf(reason);
      if (count > 0) shown[reason] = count;
    }
    return shown;
  }

  /** Live agents of the kind with the labels, of any group. */
  get #liveOfAnyGroup(): number {
    return (this.#init.ofAnyProject ?? this).#live;
  }

  #countOf(reason: IneligibleReason): number {
    const { census } = this.#init;
    switch (reason) {
      case "offline":
      case "draining":
        return census[reason];
      case "wrong-kind":
        return census.live - (this.needs === undefined ? this.#liveOfAnyGroup : this.#init.liveOf());
      case "label":
        return this.needs === undefined ? 0 : this.#init.liveOf() - this.#liveOfAnyGroup;
      case "not-granted":
        return this.#liveOfAnyGroup - this.#live;
      default:
        return this.#counts[reason];
    }
  }

  #compareProbes(a: Candidate, b: Candidate): number {
    return compareProbes(this.#init.state, this.kind, a.agent, b.agent);
  }
}

/**
 * Orders probes by the end of the back-off or hold, then by the time since the agent's last assignment, then by id.
 * So the agents of a type take turns to probe.
 */
export function compareProbes(state: SwarmState, kind: Kind, a: AgentRow, b: AgentRow): number {
  return (
    probeDueAt(state, kind, a) - probeDueAt(state, kind, b) ||
    a.lastAssignedOrder - b.lastAssignedOrder ||
    (a.id < b.id ? -1 : 1)
  );
}

function probeDueAt(state: SwarmState, kind: Kind, agent: AgentRow): number {
  return Math.max(agent.suspensionByKind.get(kind)?.until ?? 0, lastHoldOn(state, agent, kind)?.until ?? 0);
}

function emptyCounts(): Counts {
  return {
    feasible: 0,
    probe: 0,
    offline: 0,
    draining: 0,
    "wrong-kind": 0,
    label: 0,
    "not-granted": 0,
    "wrong-role": 0,
    "wrong-type": 0,
    full: 0,
    "rate-limited": 0,
    unresponsive: 0,
    "on-hold": 0,
    suspended: 0,
    "failed-this-task": 0,
  };
}

function ranked(
  isProbing: boolean,
  probes: readonly Candidate[],
  regular: readonly Candidate[],
): Candidate[] {
  const all = isProbing ? [...probes, ...regular] : [...regular, ...probes];
  return all.slice(0, limits.receiptCandidatesMax);
}

function decidedBy([winner, next]: readonly Candidate[]): DecidedBy {
  return winner === undefined || next === undefined ? "only" : winner.decidedAgainst(next);
}
