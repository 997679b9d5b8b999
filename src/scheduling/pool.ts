// The agents that may have tasks of one kind and role, ranked, during one round. Lanes that differ only in the
// agents to avoid share a pool. It is given those that have a place free and hears of each that fills.
// The counts for receipts are made at the first assignment from here and kept up to date from then on.

import { type DecidedBy, type IneligibleReason, ineligibleReasons, type Receipt } from "../core/receipt.ts";
import type { AgentRow, SwarmState } from "../core/state.ts";
import type { AgentId, Instant, Kind } from "../ids.ts";
import { Candidate, type Contender, type Ranks } from "./candidate.ts";
import { CandidateHeap } from "./candidate-heap.ts";
import { isLive, type Peers, peersOf, type Standing, standingInPool } from "./eligibility.ts";
import { agentRate, swarmRate } from "./success-rate.ts";
import type { Census } from "./survey.ts";

export interface PoolInit {
  readonly state: SwarmState;
  readonly at: Instant;
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly lambda: number;
  readonly census: Census;
}

/** Those that may have one task, as far as a receipt shows them. */
export interface Ranking {
  /** Best first, at most three; empty when nobody may. */
  readonly candidates: readonly Candidate[];
  readonly feasible: number;
  readonly decidedBy: DecidedBy;
}

type Counts = Record<IneligibleReason, number>;

/** The winner and the next two (design section 10). */
const shownInReceipt = 3;
const nobodyRanked: Ranking = { candidates: [], feasible: 0, decidedBy: "only" };
const everybody = () => true;

export class Pool implements Ranks {
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #lambda: number;
  readonly #census: Census;
  /** What is expected of an agent that has not tried the kind. */
  readonly #prior: number;
  /** Those with a place free that pass, or are suspended: whose standing an assignment may change. */
  readonly #candidates: Candidate[] = [];
  #knownById: Map<AgentId, Candidate> | undefined;
  #knownFeasible: CandidateHeap | undefined;
  readonly #probes: Candidate[] = [];
  #knownPeers: Peers | undefined;
  #counts: Counts | undefined;
  #shownCounts: Receipt["ineligible"] | undefined;

  constructor({ state, at, kind, role, lambda, census }: PoolInit) {
    this.kind = kind;
    this.role = role;
    this.#state = state;
    this.#at = at;
    this.#lambda = lambda;
    this.#census = census;
    this.#prior = swarmRate(state.recordByKind.get(kind), at);
  }

  /** Takes in an agent, if it may have tasks from here or is suspended. Before the first ranking. */
  admit(contender: Contender): void {
    const { agent } = contender;
    const standing = this.#standingOf(agent);
    if (standing !== "feasible" && standing !== "probe" && standing !== "suspended") return;
    const successRate = agentRate(agent.recordByKind.get(this.kind), this.#prior, this.#at);
    const candidate = new Candidate({ contender, ranks: this, standing, successRate, lambda: this.#lambda });
    contender.candidates.push(candidate);
    this.#candidates.push(candidate);
    if (standing === "probe") this.#probes.push(candidate);
  }

  /** Whether anybody here may have a task, leaving aside whom the task avoids. */
  get isOpen(): boolean {
    return this.#feasible.size + this.#probes.length > 0;
  }

  /** Whoever could have these tasks in the long run. */
  get peers(): Peers {
    this.#knownPeers ??= peersOf(this.#state, this.kind, this.role);
    return this.#knownPeers;
  }

  /**
   * Ranks those that may have a task. A probe goes first, or it would never be made while others have room; but
   * a task that cannot be tried again is risked only where nobody else may have it.
   *
   * @param excluded agents that failed the task, as far as that counts
   */
  rank(excluded: readonly AgentId[], isLastAttempt: boolean): Ranking {
    const isWanted = excluded.length === 0 ? everybody : (of: Candidate) => !excluded.includes(of.agent.id);
    const regular = this.#feasible.best(shownInReceipt, isWanted);
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

  /** How many agents of the swarm fail which filter, zeros absent, in the filters' order. */
  ineligible(excluded: readonly AgentId[]): Receipt["ineligible"] {
    this.#counts ??= this.#count();
    this.#shownCounts ??= withoutZeros(this.#counts);
    const excludedCount = this.#excludedCount(excluded);
    if (excludedCount === 0) return this.#shownCounts;
    return { ...this.#shownCounts, "failed-this-task": excludedCount };
  }

  /** Takes note that an agent filled or is being probed. Within a round nobody's standing gets better. */
  update(candidate: Candidate): void {
    const before = candidate.standing;
    const now = this.#standingOf(candidate.agent);
    if (before === now) return;
    candidate.standing = now;
    if (before === "feasible") this.#feasible.remove(candidate);
    if (before === "probe") this.#probes.splice(this.#probes.indexOf(candidate), 1);
    if (this.#counts === undefined) return;
    if (!mayHaveOne(before)) this.#counts[before] -= 1;
    if (!mayHaveOne(now)) this.#counts[now] += 1;
    this.#shownCounts = undefined;
  }

  get #feasible(): CandidateHeap {
    this.#knownFeasible ??= this.#rankFirst();
    return this.#knownFeasible;
  }

  #rankFirst(): CandidateHeap {
    if (this.#probes.length > 1) this.#probes.sort((a, b) => this.#compareProbes(a, b));
    return new CandidateHeap(this.#candidates.filter(({ standing }) => standing === "feasible"));
  }

  #standingOf(agent: AgentRow): Standing {
    const suspensionsHold = agent.suspensionByKind.has(this.kind) && this.peers.suspensionsHold;
    return standingInPool(agent, this.kind, this.role, suspensionsHold, this.#at);
  }

  /** Of those that would pass but for the task's failures. */
  #excludedCount(excluded: readonly AgentId[]): number {
    if (excluded.length === 0) return 0;
    this.#knownById ??= new Map(this.#candidates.map((candidate) => [candidate.agent.id, candidate]));
    let count = 0;
    for (const id of excluded) {
      const candidate = this.#knownById.get(id);
      if (candidate !== undefined && mayHaveOne(candidate.standing)) count += 1;
    }
    return count;
  }

  #count(): Counts {
    const counts: Counts = {
      offline: this.#census.offline,
      draining: this.#census.draining,
      "wrong-kind": this.#census.live,
      "wrong-role": 0,
      full: 0,
      unresponsive: 0,
      suspended: 0,
      "failed-this-task": 0,
      "rate-limited": 0,
    };
    for (const agent of this.#state.onlineByKind.get(this.kind)?.values() ?? []) {
      if (!isLive(agent)) continue;
      counts["wrong-kind"] -= 1;
      const standing = this.#standingOf(agent);
      if (!mayHaveOne(standing)) counts[standing] += 1;
    }
    return counts;
  }

  /** Whose back-off ended first, then by id. */
  #compareProbes(a: Candidate, b: Candidate): number {
    return this.#probeDueAt(a) - this.#probeDueAt(b) || (a.agent.id < b.agent.id ? -1 : 1);
  }

  #probeDueAt(candidate: Candidate): number {
    return candidate.agent.suspensionByKind.get(this.kind)?.until ?? 0;
  }
}

function mayHaveOne(standing: Standing): standing is "feasible" | "probe" {
  return standing === "feasible" || standing === "probe";
}

function ranked(
  isProbing: boolean,
  probes: readonly Candidate[],
  regular: readonly Candidate[],
): Candidate[] {
  const all = isProbing ? [...probes, ...regular] : [...regular, ...probes];
  return all.slice(0, shownInReceipt);
}

function decidedBy([winner, next]: readonly Candidate[]): DecidedBy {
  return winner === undefined || next === undefined ? "only" : winner.decidedAgainst(next);
}

function withoutZeros(counts: Counts): Receipt["ineligible"] {
  const shown: Partial<Counts> = {};
  for (const reason of ineligibleReasons) if (counts[reason] > 0) shown[reason] = counts[reason];
  return shown;
}
