// All agents as the planner sees them for one task: eligible agents in the planner's order, and the reason against each
// further agent. For display: reads the state in one pass over the agents and keeps nothing. The planner's pools
// (pool.ts), kept from round to round, decide the same.

import type { AgentId, Instant, Kind } from "../ids.ts";
import { agentOf } from "../state/agent-rows.ts";
import { phaseOf } from "../state/hold-rows.ts";
import { type CandidateTerms, type IneligibleReason, ineligibleReasons } from "../state/receipt.ts";
import { type AgentRow, capacityOf, runsTasks, type SwarmState } from "../state/state.ts";
import { type Expectation, expectationOf, qualityOf } from "../state/success-rate.ts";
import { backlogOf, hasBacklog } from "./backlog.ts";
import { Candidate, Contender, type Ranks } from "./candidate.ts";
import { type Demand, type Peers, peersOf, type Standing, standingFor, startsAtOnce } from "./eligibility.ts";
import { closedRate } from "./gates.ts";
import { lastHoldOn } from "./hold.ts";
import { loadOf, maximaOf, type Queue } from "./load.ts";
import { compareProbes } from "./pool.ts";

/** One agent, for one task. */
export interface AgentVerdict {
  readonly agent: AgentId;
  /** `feasible`, `probe`, or the first filter that the agent fails. */
  readonly standing: Standing;
  /** Whether the agent serves the kind that the task would run as. */
  readonly servesKind: boolean;
  /** Max concurrent plus prefetch, and the free part. */
  readonly capacity: number;
  readonly free: number;
  /**
   * When, by time alone, the agent passes the failed filter: after a suspension or a hold, or when all rates of its
   * type have room.
   */
  readonly until?: Instant;
  /** The terms of the planner's present comparison; absent while the agent is offline or does not serve the kind. */
  readonly terms?: CandidateTerms;
}

/** The requirements of a waiting task. */
export interface Wanted extends Demand {
  /** Whether this would be the last attempt: not risked with a probe while another agent may have the task. */
  readonly isLastAttempt: boolean;
  /** The agent that the task's affinity prefers. */
  readonly preferred?: AgentId | undefined;
}

/** L(agent) of agents with a backlog, by agent. */
export type Backlogs = ReadonlyMap<AgentRow, number>;

/** As at the start of a round, which the whole round uses. */
export function backlogsOf(state: SwarmState): Backlogs {
  const { lambda, alpha } = state.policy;
  if (lambda === 0) return new Map();
  const queues = new Map<AgentRow, Queue>();
  for (const agent of state.agentById.values())
    if (agent.online && hasBacklog(state, agent)) queues.set(agent, backlogOf(state, agent));
  const maxima = maximaOf(queues.values());
  return new Map([...queues].map(([agent, queue]) => [agent, loadOf(queue, maxima, alpha)]));
}

/**
 * Every agent that runs tasks. First the agents that may have the task, best first; then agents that serve its kind, by
 * the failed filter, the last filter first; then all others.
 */
export function verdictsOn(
  state: SwarmState,
  wanted: Wanted,
  at: Instant,
  backlogs: Backlogs = backlogsOf(state),
): AgentVerdict[] {
  const table = new VerdictTable(state, wanted, at, backlogs);
  return table.rows();
}

interface Row {
  readonly verdict: AgentVerdict;
  /** For online agents that serve the kind. */
  readonly candidate: Candidate | undefined;
  /** The major sort key. */
  readonly rank: number;
}

class VerdictTable {
  readonly #state: SwarmState;
  readonly #wanted: Wanted;
  readonly #at: Instant;
  readonly #backlogs: Backlogs;
  readonly #peers: Peers;
  readonly #expectation: Expectation;

  constructor(state: SwarmState, wanted: Wanted, at: Instant, backlogs: Backlogs) {
    this.#state = state;
    this.#wanted = wanted;
    this.#at = at;
    this.#backlogs = backlogs;
    this.#peers = peersOf(state, wanted);
    this.#expectation = expectationOf(state.recordByKind.get(wanted.kind), at);
  }

  rows(): AgentVerdict[] {
    const rows = [...this.#state.agentById.values()].filter(runsTasks).map((agent) => this.#row(agent));
    const hasRegular = rows.some(({ verdict }) => verdict.standing === "feasible");
    const probesFirst = !(this.#wanted.isLastAttempt && hasRegular);
    const verdicts = rows.sort((a, b) => this.#compare(a, b, probesFirst)).map(({ verdict }) => verdict);
    const favourite = verdicts.find((verdict) => this.#isPreferred(verdict));
    return favourite === undefined
      ? verdicts
      : [favourite, ...verdicts.filter((verdict) => verdict !== favourite)];
  }

  #isPreferred({ agent, standing }: AgentVerdict): boolean {
    if (agent !== this.#wanted.preferred || standing !== "feasible") return false;
    return startsAtOnce(agentOf(this.#state, agent));
  }

  #row(agent: AgentRow): Row {
    const { kind } = this.#wanted;
    const standing = standingFor(this.#state, agent, this.#wanted, this.#peers, this.#at);
    const servesKind = agent.kinds.has(kind);
    const candidate = agent.online && servesKind ? this.#candidate(agent) : undefined;
    const until = this.#until(agent, standing);
    const capacity = capacityOf(agent);
    const verdict: AgentVerdict = {
      agent: agent.id,
      standing,
      servesKind,
      capacity,
      free: agent.online ? Math.max(0, capacity - agent.open.size) : 0,
      ...(until === undefined ? {} : { until }),
      ...(candidate === undefined ? {} : { terms: candidate.terms }),
    };
    return { verdict, candidate, rank: rankOf(verdict) };
  }

  #candidate(agent: AgentRow): Candidate {
    const { policy } = this.#state;
    const contender = new Contender(agent);
    contender.backlog = this.#backlogs.get(agent) ?? 0;
    const candidate = new Candidate(contender, nowhere, policy);
    const record = agent.recordByKind.get(this.#wanted.kind);
    candidate.assess(qualityOf(record, this.#expectation, policy.speedExponent, this.#at));
    candidate.refresh();
    return candidate;
  }

  #until(agent: AgentRow, standing: Standing): Instant | undefined {
    if (standing === "suspended") {
      const until = agent.suspensionByKind.get(this.#wanted.kind)?.until;
      return until !== undefined && until > this.#at ? until : undefined;
    }
    if (standing === "on-hold") {
      const hold = lastHoldOn(this.#state, agent, this.#wanted.kind);
      return hold !== undefined && phaseOf(hold) === "held" ? hold.until : undefined;
    }
    if (standing !== "rate-limited") return undefined;
    return closedRate(this.#state, agent.agentType ?? "", this.#at)?.opensAt;
  }

  #compare(a: Row, b: Row, probesFirst: boolean): number {
    if (a.rank !== b.rank) {
      const areEligible = a.rank <= 0 && b.rank <= 0;
      return areEligible && !probesFirst ? b.rank - a.rank : a.rank - b.rank;
    }
    if (a.verdict.standing === "probe") return this.#compareProbes(a, b);
    if (a.candidate === undefined || b.candidate === undefined) return byId(a, b);
    return a.candidate.isBefore(b.candidate) ? -1 : 1;
  }

  #compareProbes({ candidate: a }: Row, { candidate: b }: Row): number {
    if (a === undefined || b === undefined) return 0;
    return compareProbes(this.#state, this.#wanted.kind, a.agent, b.agent);
  }
}

/** The ranks of a candidate outside any pool. */
const nowhere: Ranks = { renew: () => undefined, update: () => undefined, dismiss: () => undefined };

/** Probes −1, feasible 0, then agents that serve the kind with the last filter first, then the others. */
function rankOf({ standing, servesKind }: AgentVerdict): number {
  if (standing === "probe") return -1;
  if (standing === "feasible") return 0;
  const filters = ineligibleReasons.length;
  return (servesKind ? 1 : 1 + filters) + (filters - 1 - ineligibleReasons.indexOf(standing));
}

function byId(a: Row, b: Row): number {
  return a.verdict.agent < b.verdict.agent ? -1 : 1;
}

/** Number of agents that serve the kind, by the filter that each fails. */
export function countsByReason(
  verdicts: readonly AgentVerdict[],
): Readonly<Partial<Record<IneligibleReason, number>>> {
  const counts: Partial<Record<IneligibleReason, number>> = {};
  for (const { standing, servesKind } of verdicts) {
    if (!servesKind || standing === "feasible" || standing === "probe") continue;
    counts[standing] = (counts[standing] ?? 0) + 1;
  }
  return counts;
}

/** `isWantedByAny` for one state at one instant, remembered for equal demands. */
export class Wanting {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #known = new Map<string, boolean>();

  constructor(state: SwarmState, at: Instant) {
    this.#state = state;
    this.#at = at;
  }

  isByAny(demand: Demand): boolean {
    const key = JSON.stringify([
      demand.kind,
      demand.role,
      demand.needs,
      demand.agentType,
      demand.access?.key,
      demand.avoid,
    ]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = isWantedByAny(this.#state, demand, this.#at);
    this.#known.set(key, found);
    return found;
  }

  /** Number of different demands asked about: each costs as much as the kind has agents. */
  get asked(): number {
    return this.#known.size;
  }
}

/** Whether any agent may have a task now; stops at the first. */
export function isWantedByAny(state: SwarmState, demand: Demand, at: Instant): boolean {
  const peers = peersOf(state, demand);
  for (const agent of state.onlineByKind.get(demand.kind as Kind)?.values() ?? []) {
    const standing = standingFor(state, agent, demand, peers, at);
    if (standing === "feasible" || standing === "probe") return true;
  }
  return false;
}
