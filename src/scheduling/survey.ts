// What a round reads of every agent, once, at its start: who has a place free, how many are out of reach, and
// how each one's own backlog compares. All totals and maxima of a round are these.

import type { AgentRow, SwarmState } from "../core/state.ts";
import { isFree } from "./eligibility.ts";
import { loadOf, maximaOf, type Queue } from "./load.ts";
import type { Policy } from "./policy.ts";

/** Agents of the whole swarm by the two filters that look at nothing but the agent. */
export interface Census {
  readonly offline: number;
  readonly draining: number;
  /** All others: live. */
  readonly live: number;
}

export interface Survey {
  readonly census: Census;
  /** Live, responsive, and with a place free. */
  readonly free: readonly AgentRow[];
  /** L(agent), [0, 1], of those that have a backlog; of nobody when λ is 0. */
  readonly backlogByAgent: ReadonlyMap<AgentRow, number>;
}

/** What there is to know while nothing waits. */
export const nothingToPlan: Survey = {
  census: { offline: 0, draining: 0, live: 0 },
  free: [],
  backlogByAgent: new Map(),
};

export function surveyOf(state: SwarmState, policy: Policy): Survey {
  const isBacklogCounted = policy.lambda !== 0;
  let offline = 0;
  let draining = 0;
  const free: AgentRow[] = [];
  const queueByAgent = new Map<AgentRow, Queue>();
  for (const agent of state.agentById.values()) {
    if (!agent.online) offline += 1;
    else if (agent.draining) draining += 1;
    else if (isFree(agent)) free.push(agent);
    if (isBacklogCounted && agent.open.size > agent.maxConcurrent)
      queueByAgent.set(agent, backlogOf(agent, state.tick));
  }
  const live = state.agentById.size - offline - draining;
  return { census: { offline, draining, live }, free, backlogByAgent: loadByAgent(queueByAgent, policy) };
}

/**
 * What an agent holds beyond what it runs at once: prefetched attempts, that wait for a place. It runs them in
 * the order of assignment, so those that wait are the latest.
 */
export function backlogOf(agent: AgentRow, tick: number): Queue {
  let position = 0;
  let queueDepth = 0;
  let oldestAge = 0;
  for (const attempt of agent.open.values()) {
    position += 1;
    if (position <= agent.maxConcurrent) continue;
    queueDepth += attempt.weight;
    oldestAge = Math.max(oldestAge, tick - attempt.assignedTick);
  }
  return { queueDepth, oldestAge };
}

function loadByAgent(queueByAgent: Map<AgentRow, Queue>, policy: Policy): Map<AgentRow, number> {
  const maxima = maximaOf(queueByAgent.values());
  const loads = new Map<AgentRow, number>();
  for (const [agent, queue] of queueByAgent) loads.set(agent, loadOf(queue, maxima, policy.alpha));
  return loads;
}
