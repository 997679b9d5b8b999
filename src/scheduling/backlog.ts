// What an agent has before it that it does not run yet: what L(agent) is made of.

import type { AgentRow } from "../core/state.ts";
import type { Queue } from "./load.ts";

/** Whether it has any. */
export function hasBacklog(agent: AgentRow): boolean {
  return agent.open.size > agent.maxConcurrent;
}

/**
 * What an agent holds beyond what it runs at once: prefetched attempts, that wait for a place. It runs them in
 * the order of assignment, so those that wait are the latest.
 *
 * @param tick of the swarm
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
