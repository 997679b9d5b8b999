// An agent's backlog, the input of L(agent) (docs/scheduling.md): prefetched attempts that wait to run, and slot leases
// that wait for slots.

import { type AgentRow, runsTasks, type SlotLeaseRow, type SwarmState } from "../state/state.ts";
import { thousandthsPerWeight } from "../state/weight.ts";
import type { Queue } from "./load.ts";

/**
 * Whether the agent has a backlog for comparison. An agent that runs no tasks is never compared: its waits would make
 * every other agent's backlog look small.
 */
export function hasBacklog(state: SwarmState, agent: AgentRow): boolean {
  if (!runsTasks(agent)) return false;
  if (agent.open.size > agent.maxConcurrent) return true;
  const slots = state.slotsByAgent.size === 0 ? undefined : state.slotsByAgent.get(agent.id);
  if (slots === undefined) return false;
  for (const slot of slots.values()) if (slot.state === "waiting") return true;
  return false;
}

/**
 * Weight and age of an agent's backlog. An agent runs attempts in the order of assignment, so the latest attempts wait.
 * Ages of attempts are in ticks of the swarm. The age of a slot lease is in ticks of the slowest resource that the
 * lease needs.
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
