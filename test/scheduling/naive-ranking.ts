// Eligible agents and the best agent (docs/scheduling.md, "Who does it"), from all agents of the swarm, again for
// each task.

import type { AgentId, Instant, Kind, ProjectId } from "../../src/ids.ts";
import { rateGate } from "../../src/scheduling/gates.ts";
import { loads } from "../../src/scheduling/load.ts";
import type { Needs } from "../../src/state/needs.ts";
import type { AgentRule, Policy } from "../../src/state/policy.ts";
import type { CandidateTerms, DecidedBy, IneligibleReason } from "../../src/state/receipt.ts";
import type { AgentRow, HoldRow, SwarmState } from "../../src/state/state.ts";
import { expectationOf, qualityOf } from "../../src/state/success-rate.ts";

/** The properties of a task that matter for the choice of an agent. */
export interface Demand {
  /** The kind to run as. */
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly needs: Needs | undefined;
  /** The only agent type that a budget allows. */
  readonly agentType: string | undefined;
  readonly failedBy: readonly AgentId[];
  /** Of the task; undefined: any project. */
  readonly project: ProjectId | undefined;
}

/** Whether the agent has an accepted value of every label that the task needs. */
function hasLabels({ labels }: AgentRow, needs: Needs = {}): boolean {
  return Object.entries(needs).every(([label, values]) => values.some((value) => labels[label] === value));
}

export interface RankedAgent {
  readonly agent: AgentRow;
  readonly isProbe: boolean;
  readonly score: number;
  readonly terms: CandidateTerms;
}

export class NaiveRanking {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #policy: Policy;
  readonly #backlogAtStart: ReadonlyMap<AgentRow, number>;

  constructor(state: SwarmState, at: Instant, policy: Policy) {
    this.#state = state;
    this.#at = at;
    this.#policy = policy;
    const agents = this.#agents;
    const queues = agents.map((agent) => {
      const waiting = [...agent.open.values()].sort((a, b) => a.number - b.number).slice(agent.maxConcurrent);
      return {
        queueDepth: waiting.reduce((sum, { weight }) => sum + weight, 0),
        oldestAge: Math.max(0, ...waiting.map(({ assignedTick }) => state.tick - assignedTick)),
      };
    });
    const all = loads(queues, policy.alpha);
    this.#backlogAtStart = new Map(
      agents.map((agent, n) => [agent, policy.lambda === 0 ? 0 : (all[n] as number)]),
    );
  }

  /** Agents that run tasks. An agent without kinds exists for slots, and has no peers. */
  get #agents(): AgentRow[] {
    return [...this.#state.agentById.values()].filter(({ kinds }) => kinds.size > 0);
  }

  /** Eligible agents, best first, and the number of others by failed filter. */
  rank(demand: Demand, isLastAttempt: boolean, preferred: AgentId | undefined) {
    const ineligible: Partial<Record<IneligibleReason, number>> = {};
    const ranked: RankedAgent[] = [];
    const peers = this.#whoCouldServe(demand);
    for (const agent of this.#agents) {
      const reason = this.#reasonAgainst(agent, demand, peers);
      if (reason === undefined) ranked.push(this.#rankedOf(agent, demand.kind, peers));
      else ineligible[reason] = (ineligible[reason] ?? 0) + 1;
    }
    ranked.sort((a, b) => this.#compare(a, b, isLastAttempt, demand.kind));
    const favourite = ranked.find(
      ({ agent, isProbe }) => agent.id === preferred && !isProbe && agent.open.size < agent.maxConcurrent,
    );
    if (favourite === undefined) return { ranked, ineligible, isByAffinity: false };
    const others = ranked.filter((each) => each !== favourite);
    return { ranked: [favourite, ...others], ineligible, isByAffinity: others.length > 0 };
  }

  /** Whether agents serve the demand, and each of those that are there is on hold. */
  areAllOnHold(demand: Demand): boolean {
    const peers = this.#whoCouldServe(demand);
    return peers.length > 0 && peers.every((agent) => this.#holdsOn(agent, demand.kind).length > 0);
  }

  mayAnybodyHave(demand: Demand): boolean {
    const peers = this.#whoCouldServe(demand);
    return this.#agents.some((agent) => this.#reasonAgainst(agent, demand, peers) === undefined);
  }

  #reasonAgainst(
    agent: AgentRow,
    { kind, role, needs, agentType, failedBy, project }: Demand,
    peers: readonly AgentRow[],
  ): IneligibleReason | undefined {
    if (!agent.online) return "offline";
    if (agent.draining) return "draining";
    if (!agent.kinds.has(kind)) return "wrong-kind";
    if (!hasLabels(agent, needs)) return "label";
    if (!this.#isGranted(agent, project)) return "not-granted";
    if (role !== undefined && agent.role !== role) return "wrong-role";
    if (agentType !== undefined && agent.agentType !== agentType) return "wrong-type";
    if (agent.open.size >= agent.maxConcurrent + agent.prefetch) return "full";
    if (agent.agentType !== undefined && rateGate(this.#state, agent.agentType, this.#at))
      return "rate-limited";
    if (agent.unresponsive) return "unresponsive";
    const holds = this.#holdsOn(agent, kind);
    if (holds.some((hold) => hold.timer !== undefined || hold.probe !== undefined)) return "on-hold";
    const isSuspended = agent.suspensionByKind.has(kind) && this.#suspensionsHold(peers, kind);
    if (isSuspended && !this.#isProbe(agent, kind, peers)) return "suspended";
    if (failedBy.includes(agent.id) && peers.some((other) => !failedBy.includes(other.id))) {
      return "failed-this-task";
    }
    return undefined;
  }

  #isGranted({ group }: AgentRow, project: ProjectId | undefined): boolean {
    const { projects } = this.#state.grants.byGroup.get(group) ?? {};
    return project === undefined || projects === undefined || projects.includes(project);
  }

  /** Holds on the agent, on its type, and on resources that refused the agent's attempts of the kind. */
  #holdsOn({ id, agentType = "" }: AgentRow, kind: Kind): HoldRow[] {
    const { agent, type, resource } = this.#state.holds;
    const ofResources = [...resource.values()].filter(({ users }) => users.get(id)?.has(kind) === true);
    return [agent.get(id), type.get(agentType), ...ofResources].filter((hold) => hold !== undefined);
  }

  /** Suspensions yield unless some peer is neither suspended nor on hold. */
  #suspensionsHold(peers: readonly AgentRow[], kind: Kind): boolean {
    return peers.some((peer) => !peer.suspensionByKind.has(kind) && this.#holdsOn(peer, kind).length === 0);
  }

  /** Live, not on hold and not suspended; without such agents live and not on hold; without those all live agents. */
  #whoCouldServe({ kind, role, needs, agentType, project }: Demand): AgentRow[] {
    const live = this.#agents.filter(
      (agent) =>
        agent.online &&
        !agent.draining &&
        agent.kinds.has(kind) &&
        hasLabels(agent, needs) &&
        this.#isGranted(agent, project) &&
        (role === undefined || agent.role === role) &&
        (agentType === undefined || agent.agentType === agentType),
    );
    const free = live.filter((agent) => this.#holdsOn(agent, kind).length === 0);
    const unsuspended = free.filter((agent) => !agent.suspensionByKind.has(kind));
    return unsuspended.length > 0 ? unsuspended : free.length > 0 ? free : live;
  }

  /** Suspended while others are not, with its back-off ended and no attempt of the kind since. */
  #isProbe(agent: AgentRow, kind: Kind, peers: readonly AgentRow[]): boolean {
    const suspension = agent.suspensionByKind.get(kind);
    const isOnHold = this.#holdsOn(agent, kind).length > 0;
    if (suspension === undefined || !this.#suspensionsHold(peers, kind)) return isOnHold;
    const isUnderWay = [...agent.open.values()].some(
      (open) => open.kind === kind && open.state !== "revoked" && open.assignedAt >= suspension.until,
    );
    return this.#at >= suspension.until && !isUnderWay;
  }

  #rankedOf(agent: AgentRow, kind: Kind, peers: readonly AgentRow[]): RankedAgent {
    const expectation = expectationOf(this.#state.recordByKind.get(kind), this.#at);
    const record = agent.recordByKind.get(kind);
    const quality = qualityOf(record, expectation, this.#policy.speedExponent, this.#at);
    const { successRate: rate, speed } = quality;
    const load = agent.open.size / agent.maxConcurrent;
    const backlog = this.#backlogAtStart.get(agent) ?? 0;
    const score = (rate * speed) / (1 + load + this.#policy.lambda * backlog);
    return {
      agent,
      isProbe: this.#isProbe(agent, kind, peers),
      score,
      terms: {
        agent: agent.id,
        score: shown(score),
        successRate: shown(rate),
        load: shown(load),
        ...(backlog === 0 ? {} : { backlog: shown(backlog) }),
        ...(speed === 1 ? {} : { speed: shown(speed) }),
      },
    };
  }

  #compare(a: RankedAgent, b: RankedAgent, isLastAttempt: boolean, kind: Kind): number {
    if (a.isProbe !== b.isProbe) return a.isProbe === isLastAttempt ? 1 : -1;
    if (a.isProbe) {
      const dueAt = ({ agent }: RankedAgent) =>
        Math.max(
          agent.suspensionByKind.get(kind)?.until ?? 0,
          ...this.#holdsOn(agent, kind).map(({ until }) => until),
        );
      return dueAt(a) - dueAt(b) || a.agent.lastAssignedOrder - b.agent.lastAssignedOrder || byId(a, b);
    }
    if (this.#policy.agentRule === "first-idle") {
      const isBusy = (of: RankedAgent) => (of.agent.open.size > 0 ? 1 : 0);
      return isBusy(a) - isBusy(b) || a.agent.joinedOrder - b.agent.joinedOrder;
    }
    return (
      b.score - a.score ||
      a.agent.open.size - b.agent.open.size ||
      a.agent.lastAssignedOrder - b.agent.lastAssignedOrder ||
      byId(a, b)
    );
  }
}

/** The first rule in which the winner and the runner-up differ. */
export function decidedBetween(
  winner: RankedAgent,
  second: RankedAgent | undefined,
  agentRule: AgentRule,
): DecidedBy {
  if (winner.isProbe || second?.isProbe === true) return "probe";
  if (second === undefined) return "only";
  if (agentRule === "first-idle") {
    const isIdle = (of: RankedAgent) => of.agent.open.size === 0;
    return isIdle(winner) === isIdle(second) ? "joined" : "in-flight";
  }
  if (winner.score !== second.score) return "score";
  if (winner.agent.open.size !== second.agent.open.size) return "in-flight";
  return winner.agent.lastAssignedOrder === second.agent.lastAssignedOrder ? "id" : "longest-idle";
}

function byId(a: RankedAgent, b: RankedAgent): number {
  return a.agent.id < b.agent.id ? -1 : 1;
}

function shown(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
