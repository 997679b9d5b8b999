// Who may have a task (docs/scheduling.md): filters in a fixed order, each with its reason. Ranking never
// overrides them. Two look at the others, because they give way rather than let a task starve: an agent that
// failed the task, or is suspended for its kind, is passed over only while somebody else can have it.
// Not here: who is best among those that pass (score.ts), when a suspension begins (suspension.ts).

import type { AgentId, Instant, Kind } from "../ids.ts";
import type { IneligibleReason } from "../state/receipt.ts";
import { type AgentRow, placesOf, type SwarmState } from "../state/state.ts";
import { rateGate } from "./gates.ts";

/** What tasks ask of the agents that could ever have them. */
export interface Calling {
  readonly kind: Kind;
  readonly role: string | undefined;
  /** Absent: of any type. */
  readonly agentType?: string | undefined;
}

/** What a task asks of its agent. */
export interface Demand extends Calling {
  /** Agents that failed it. */
  readonly avoid: readonly AgentId[];
}

/** `feasible`: may have as many as fit. `probe`: suspended and due for exactly one task. */
export type Standing = "feasible" | "probe" | IneligibleReason;

/**
 * Those who could have a task of one kind, role and type in the long run, whether or not they have a place free now:
 * the live agents (online, not draining) that are not suspended for the kind; all live ones when every one is
 * suspended. An unresponsive agent is among them: it is expected back, and waiting costs a task no attempt.
 */
export interface Peers {
  readonly agents: readonly AgentRow[];
  /** Whether suspensions hold here. They do not when all who could serve are suspended: that would starve
   *  the kind, and says more about the kind than about any agent. */
  readonly suspensionsHold: boolean;
}

/** One pass over the agents of the kind. The answer does not change while only assignments happen. */
export function peersOf(state: SwarmState, calling: Calling): Peers {
  const live: AgentRow[] = [];
  const unsuspended: AgentRow[] = [];
  for (const agent of state.onlineByKind.get(calling.kind)?.values() ?? []) {
    if (!isLive(agent) || !isCalled(agent, calling)) continue;
    live.push(agent);
    if (!agent.suspensionByKind.has(calling.kind)) unsuspended.push(agent);
  }
  const suspensionsHold = unsuspended.length > 0;
  return { agents: suspensionsHold ? unsuspended : live, suspensionsHold };
}

/** Agents that the task's failures exclude: all it has failed on, or nobody when they are all there is. */
export function excludedByFailure(avoid: readonly AgentId[], peers: Peers): readonly AgentId[] {
  return peers.agents.some((agent) => !avoid.includes(agent.id)) ? avoid : [];
}

/** The first filter that an agent fails for this demand, or how it passed them all. */
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
    servesKind: agent.kinds.has(demand.kind),
    at,
  });
  if (standing !== "feasible" && standing !== "probe") return standing;
  return excludedByFailure(demand.avoid, peers).includes(agent.id) ? "failed-this-task" : standing;
}

/** What an agent's standing depends on besides its row. */
export interface Circumstances {
  readonly suspensionsHold: boolean;
  /** Whether the rate of the agent's type is used up, what is reserved included. */
  readonly isRateLimited: boolean;
  readonly servesKind: boolean;
  readonly at: Instant;
}

/** As `standingFor`, but for the task's own failures: the same for all tasks that ask the same. */
export function standingInPool(
  agent: AgentRow,
  { kind, role, agentType }: Calling,
  { suspensionsHold, isRateLimited, servesKind, at }: Circumstances,
): Standing {
  if (!agent.online) return "offline";
  if (agent.draining) return "draining";
  if (!servesKind) return "wrong-kind";
  if (!hasRole(agent, role)) return "wrong-role";
  if (!isOfType(agent, agentType)) return "wrong-type";
  if (isFull(agent)) return "full";
  if (isRateLimited) return "rate-limited";
  if (agent.unresponsive) return "unresponsive";
  if (!suspensionsHold || agent.suspensionByKind.size === 0 || !agent.suspensionByKind.has(kind))
    return "feasible";
  return isProbeDue(agent, kind, at) ? "probe" : "suspended";
}

export function isLive(agent: AgentRow): boolean {
  return agent.online && !agent.draining;
}

/** Every place is taken, those for prefetched tasks included. */
export function isFull(agent: AgentRow): boolean {
  return agent.open.size >= placesOf(agent);
}

/** Whether a suspended agent may have one task now: its back-off is over and no probe is under way. */
export function isProbeDue(agent: AgentRow, kind: Kind, at: Instant): boolean {
  const suspension = agent.suspensionByKind.get(kind);
  return suspension !== undefined && suspension.until <= at && !isProbing(agent, kind);
}

/**
 * Whether a probe is under way: an attempt of the kind that was assigned after the back-off. Read from the open
 * attempts, so that it ends with the attempt however that ends; a lost probe must not block the next one.
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

/** Whether an agent that serves the kind has the role and is of the type. */
export function isCalled(agent: AgentRow, { role, agentType }: Calling): boolean {
  return hasRole(agent, role) && isOfType(agent, agentType);
}

export function hasRole(agent: AgentRow, role: string | undefined): boolean {
  return role === undefined || agent.role === role;
}

function isOfType(agent: AgentRow, agentType: string | undefined): boolean {
  return agentType === undefined || agent.agentType === agentType;
}
