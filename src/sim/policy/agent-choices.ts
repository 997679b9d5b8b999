// Which agent gets a task: VAPORA's published rule, and its rivals. Each rule sees the number of attempts that
// an agent holds, and its number of successes. production.ts has Waggle's own rule.

import { assignTaskToBestAgent } from "../../scheduling/exact/vapora.ts";
import type { SeededRandom } from "../random.ts";
import type { SimAgent } from "./dispatcher.ts";

export interface AgentView {
  readonly agent: SimAgent;
  /** Held, queued at the agent or running. */
  inFlight: number;
  attempts: number;
  successes: number;
}

/** @param candidates in order of joining; not empty */
export type AgentChoice = (candidates: readonly AgentView[]) => AgentView;

/** The first in order of joining. */
export const firstAgent: AgentChoice = (candidates) => candidates[0] as AgentView;

export function randomAgent(random: SeededRandom): AgentChoice {
  return (candidates) => random.pick(candidates);
}

export function roundRobinAgents(): AgentChoice {
  let last = -1;
  return (candidates) => {
    const next = candidates.find(({ agent }) => agent.index > last) ?? (candidates[0] as AgentView);
    last = next.agent.index;
    return next;
  };
}

/** Ties go to the first in order of joining. */
export const leastInFlight: AgentChoice = (candidates) =>
  candidates.reduce((least, view) => (view.inFlight < least.inFlight ? view : least));

/** The less loaded of two agents drawn at random (Mitzenmacher's power of two choices). */
export function twoChoices(random: SeededRandom): AgentChoice {
  return (candidates) => {
    const first = random.pick(candidates);
    const second = random.pick(candidates);
    return second.inFlight < first.inFlight ? second : first;
  };
}

/** `success_rate / (1 + load)` of VAPORA's ADR-018, ties to the first. One success rate per agent, as
 *  published. An agent without attempts counts as successful. */
export const vaporaAgent: AgentChoice = (candidates) => {
  const agents = candidates.map((view, place) => ({
    id: String(place),
    status: "ready" as const,
    successRate: view.attempts === 0 ? 1 : view.successes / view.attempts,
    inFlight: view.inFlight,
    maxConcurrent: view.agent.maxConcurrent,
  }));
  return candidates[Number(assignTaskToBestAgent(agents).agent)] as AgentView;
};
