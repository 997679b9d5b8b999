// Eligible agents for a task (docs/scheduling.md): filters in a fixed order, each with a reason. Ranking never
// overrides a filter. Two filters depend on the other agents, because these filters yield rather than let a task
// starve. An agent that failed the task, or is suspended for the kind, is skipped only while another agent can have the
// task. Not here: the ranking of eligible agents (score.ts), the start of a suspension (suspension.ts).

import type { AgentId, Instant, Kind } from "../ids.ts";
import type { Access } from "../state/grant.ts";
import { meetsNeeds, type Needs } from "../state/needs.ts";
import type { IneligibleReason } from "../state/receipt.ts";
import { type AgentRow, capacityOf, type SwarmState } from "../state/state.ts";
import { rateGate } from "./gates.ts";
import { holdAt } from "./hold.ts";

/** A task's requirements, constant over the task's attempts. */
export interface Calling {
  readonly kind: Kind;
  readonly role: string | undefined;
  /** Absent: any labels. */
  readonly needs?: Needs | undefined;
  /** Absent: any type. */
  readonly agentType?: string | undefined;
  /** The groups whose grants include the task's project; absent: any group. */
  readonly access?: Access | undefined;
}

/** A task's requirements for the next attempt. */
export interface Demand extends Calling {
  /** Agents that failed the task. */
  readonly avoid: readonly AgentId[];
}

/** `feasible`: may have as many tasks as fit. `probe`: suspended or on hold, and due for exactly one task. */
export type Standing = "feasible" | "probe" | IneligibleReason;

/**
 * Agents that could have a task of one kind, role, needs and type in the long run, with or without free capacity now.
 * The set has the live agents (online, not draining) that are neither on hold nor suspended for the kind. Without such
 * agents it has the suspended agents that are not on hold; without those, all live agents. Unresponsive agents are
 * included: an unresponsive agent is expected back, and waiting costs a task no attempt.
 */
export interface Peers {
  readonly agents: readonly AgentRow[];
  /**
   * Whether suspensions hold. False when all live agents of the kind are suspended or on hold: suspensions would
   * starve the kind. The cause lies more likely in the kind than in any agent. Holds never yield.
   */
  readonly suspensionsHold: boolean;
  /** All live agents are on hold, and there is one. */
  readonly areOnHold: boolean;
}

/** One pass over the agents of the kind. The result does not change while only assignments happen. */
export function peersOf(state: SwarmState, calling: Calling): Peers {
  const peers: Record<PeerTier, AgentRow[]> = { able: [], suspended: [], held: [] };
  for (const agent of state.onlineByKind.get(calling.kind)?.values() ?? []) {
    if (!isLive(agent) || !isCalled(agent, calling)) continue;
    peers[tierOf(agent, calling.kind, holdAt(state, agent, calling.kind) !== undefined)].push(agent);
  }
  const { able, suspended, held } = peers;
  const agents = able.length > 0 ? able : suspended.length > 0 ? suspended : held;
  const areOnHold = agents === held && held.length > 0;
  return { agents, suspensionsHold: able.length > 0, areOnHold };
}

/** How well an agent can have tasks in the long run. Peers are the agents of the best tier with any agent. */
export type PeerTier = "able" | "suspended" | "held";

export function tierOf({ suspensionByKind }: AgentRow, kind: Kind, isOnHold: boolean): PeerTier {
  if (isOnHold) return "held";
  return suspensionByKind.size > 0 && suspensionByKind.has(kind) ? "suspended" : "able";
}

/**
 * Agents excluded by the task's failures: all agents that failed the task, or none when no other agent could have the
 * task.
 */
export function excludedByFailure(avoid: readonly AgentId[], peers: Peers): readonly AgentId[] {
  return peers.agents.some((agent) => !avoid.includes(agent.id)) ? avoid : [];
}

/** The first filter that an agent fails for the demand, or how the agent passed all filters. */
export function standingFor(
  state: SwarmState,
  agent: AgentRow,
  demand: Demand,
  peers: Peers,
  at: Instant,
): Standing {
  const standing = standingInPool(agent, demand, {
    suspensionsHold: peers.suspensionsHold,
    isRateLimited: rateGate(state, agent.agentType, at),
    hold: holdAt(state, agent, demand.kind),
    servesKind: agent.kinds.has(demand.kind),
    at,
  });
  if (standing !== "feasible" && standing !== "probe") return standing;
  return excludedByFailure(demand.avoid, peers).includes(agent.id) ? "failed-this-task" : standing;
}

/** The facts of an agent's standing outside its row. */
export interface Circumstances {
  readonly suspensionsHold: boolean;
  /** Whether the rate of the agent's type is used up, reserved tokens included. */
  readonly isRateLimited: boolean;
  /** The hold on the agent or on its type. */
  readonly hold: ReturnType<typeof holdAt>;
  readonly servesKind: boolean;
  readonly at: Instant;
}

/** `standingFor` without the task's own failures: the same for all tasks with the same requirements. */
export function standingInPool(
  agent: AgentRow,
  { kind, role, needs, agentType, access }: Calling,
  { suspensionsHold, isRateLimited, hold, servesKind, at }: Circumstances,
): Standing {
  if (!agent.online) return "offline";
  if (agent.draining) return "draining";
  if (!servesKind) return "wrong-kind";
  if (needs !== undefined && !meetsNeeds(agent.labels, needs)) return "label";
  if (access !== undefined && !access.admits(agent.group)) return "not-granted";
  if (!hasRole(agent, role)) return "wrong-role";
  if (!isOfType(agent, agentType)) return "wrong-type";
  if (isFull(agent)) return "full";
  if (isRateLimited) return "rate-limited";
  if (agent.unresponsive) return "unresponsive";
  if (hold === "held") return "on-hold";
  if (!suspensionsHold || agent.suspensionByKind.size === 0 || !agent.suspensionByKind.has(kind))
    return hold === undefined ? "feasible" : "probe";
  return isProbeDue(agent, kind, at) ? "probe" : "suspended";
}

export function isLive(agent: AgentRow): boolean {
  return agent.online && !agent.draining;
}

/** All capacity is occupied, prefetch included. */
export function isFull(agent: AgentRow): boolean {
  return agent.open.size >= capacityOf(agent);
}

/** Whether the agent would start a task now, and not keep it behind others as prefetched. */
export function startsAtOnce({ open, maxConcurrent }: AgentRow): boolean {
  return open.size < maxConcurrent;
}

/** Whether a suspended agent may have one task now: its back-off has ended and no probe is under way. */
export function isProbeDue(agent: AgentRow, kind: Kind, at: Instant): boolean {
  const suspension = agent.suspensionByKind.get(kind);
  return suspension !== undefined && suspension.until <= at && !isProbing(agent, kind);
}

/**
 * Whether a probe is under way: an attempt of the kind, assigned after the back-off. Derived from the open attempts, so
 * that a probe ends with the attempt in any way: a lost probe must not block the next probe.
 */
export function isProbing(agent: AgentRow, kind: Kind): boolean {
  const suspension = agent.suspensionByKind.get(kind);
  if (suspension === undefined) return false;
  for (const attempt of agent.open.values()) {
    if (attempt.kind !== kind || attempt.state === "revoked") continue;
    if (attempt.assignedAt >= suspension.until) return true;
  }
  return false;
}

/** Whether an agent of the kind has the labels, a grant for the project and the role, and is of the type. */
export function isCalled(agent: AgentRow, { role, needs, agentType, access }: Calling): boolean {
  return (
    meetsNeeds(agent.labels, needs) &&
    (access === undefined || access.admits(agent.group)) &&
    hasRole(agent, role) &&
    isOfType(agent, agentType)
  );
}

export function hasRole(agent: AgentRow, role: string | undefined): boolean {
  return role === undefined || agent.role === role;
}

function isOfType(agent: AgentRow, agentType: string | undefined): boolean {
  return agentType === undefined || agent.agentType === agentType;
}
