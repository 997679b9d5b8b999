// What an agent has before it that it does not run yet: what L(agent) is made of (docs/scheduling.md). Prefetched
// attempts, that wait for a place, and slot leases, that wait for a slot.

import { type AgentRow, runsTasks, type SlotLeaseRow, type SwarmState } from "../state/state.ts";
import { thousandthsPerWeight } from "../state/weight.ts";
import type { Queue } from "./load.ts";

/** Whether it has any that others are compared with. Whoever runs no tasks is compared with nobody: what it waits for
 *  would only make every agent's own backlog look small. */
export function hasBacklog(state: SwarmState, agent: AgentRow): boolean {
  if (!runsTasks(agent)) return false;
  if (agent.open.size > agent.maxConcurrent) return true;
  const slots = state.slotsByAgent.size === 0 ? undefined : state.slotsByAgent.get(agent.id);
  if (slots === undefined) return false;
  for (const slot of slots.values()) if (slot.state === "waiting") return true;
  return false;
}

/**
 * Weight and age of what waits at an agent. It runs attempts in the order of assignment, so those that wait are the
 * latest; their age is in ticks of the swarm, that of a slot lease in ticks of the slowest resource it needs.
 */
export function backlogOf(state: SwarmState, agent: AgentRow): Queue {
  let position = 0;
  let queueDepth = 0;
  let oldestAge = 0;
  for (const attempt of agent.open.values()) {
    position += 1;
    if (position <= agent.maxConcurrent) continue;
    queueDepth += attempt.weight;
    oldestAge = Math.max(oldestAge, state.tick - attempt.assignedTick);
  }
  for (const slot of state.slotsByAgent.get(agent.id)?.values() ?? []) {
    if (slot.state !== "waiting") continue;
    queueDepth += slot.weightThousandths / thousandthsPerWeight;
    oldestAge = Math.max(oldestAge, ageOf(state, slot));
  }
  return { queueDepth, oldestAge };
}

function ageOf(state: SwarmState, { requestedTicks }: SlotLeaseRow): number {
  let age = Number.POSITIVE_INFINITY;
  for (const [resource, tick] of requestedTicks)
    age = Math.min(age, (state.resourceByName.get(resource)?.tick ?? tick) - tick);
  return Number.isFinite(age) ? age : 0;
}
