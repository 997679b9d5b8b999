// VAPORA's selection and swarm metrics, to the letter (ADR-018, "Task Assignment Logic", "Real-Time Metrics"), with the
// formulas of score.ts. Gaps included: a full agent is still selected when it scores best. In production, the filters
// come first (eligibility.ts).

import { NoAgentsAvailableError } from "../../errors.ts";
import { checkObject, checkObjects, checkText, checkWhole, refuse } from "../../state/argument.ts";
import { type ScoreTerms, vaporaLoad, vaporaScore } from "../score.ts";

const statuses: ReadonlySet<string> = new Set<VaporaAgent["status"]>(["ready", "busy", "offline"]);

/** The document's AgentState. */
export interface VaporaAgent extends ScoreTerms {
  readonly id: string;
  readonly role?: string;
  readonly status: "ready" | "busy" | "offline";
}

export interface VaporaAssignment<Agent extends VaporaAgent> {
  readonly agent: string;
  /** The agent's score before it got the task. */
  readonly score: number;
  /** All agents afterwards: the selected agent has one more in flight. */
  readonly agents: readonly Agent[];
}

/** `vaporaLoad` of terms from outside. @throws InvalidValueError for a term that is invalid or out of range */
export function currentLoad(terms: ScoreTerms): number {
  checkObject(terms, "terms");
  checkTerms(terms, "");
  return vaporaLoad(terms);
}

/** `vaporaScore` of terms from outside. @throws InvalidValueError for a term that is invalid or out of range */
export function assignmentScore(terms: ScoreTerms): number {
  checkObject(terms, "terms");
  checkTerms(terms, "");
  return vaporaScore(terms);
}

/**
 * The document's `assign_task_to_best_agent`: of the ready or busy agents, the one with the highest score; of equals,
 * the first.
 *
 * @param role that the agent must have, as the document's comment says; the document's code ignores roles
 * @throws NoAgentsAvailableError when all are offline, or none has the role
 * @throws InvalidValueError for an agent whose success rate, in flight, max concurrent or status is out of range
 */
export function assignTaskToBestAgent<Agent extends VaporaAgent>(
  agents: readonly Agent[],
  role?: string,
): VaporaAssignment<Agent> {
  checkAgents(agents);
  if (role !== undefined) checkText(role, "role");
  let best: { readonly agent: Agent; readonly score: number } | undefined;
  for (const agent of agents) {
    if (agent.status === "offline" || (role !== undefined && agent.role !== role)) continue;
    const score = vaporaScore(agent);
    if (best === undefined || score > best.score) best = { agent, score };
  }
  if (best === undefined) {
    throw new NoAgentsAvailableError(
      role === undefined ? "no agent is online: start one" : `no agent of role ${role} is online: start one`,
    );
  }
  const { agent: selected, score } = best;
  const after = agents.map((agent) =>
    agent === selected ? { ...agent, inFlight: agent.inFlight + 1 } : agent,
  );
  return { agent: selected.id, score, agents: after };
}

/** The document's SwarmMetrics. Offline agents count as idle or busy too, and in the means, as in the document. */
export interface SwarmMetrics {
  readonly totalAgents: number;
  /** With nothing in flight. */
  readonly idleAgents: number;
  readonly busyAgents: number;
  readonly offlineAgents: number;
  readonly totalInFlight: number;
  /** [0, 1]; 0 without agents, where the document divides by zero. */
  readonly avgSuccessRate: number;
  /** 0 without agents. */
  readonly avgLoad: number;
}

/** @throws InvalidValueError for an agent whose success rate, in flight, max concurrent or status is out of range */
export function collectSwarmMetrics(agents: readonly VaporaAgent[]): SwarmMetrics {
  checkAgents(agents);
  const idleAgents = agents.filter(({ inFlight }) => inFlight === 0).length;
  return {
    totalAgents: agents.length,
    idleAgents,
    busyAgents: agents.length - idleAgents,
    offlineAgents: agents.filter(({ status }) => status === "offline").length,
    totalInFlight: agents.reduce((total, { inFlight }) => total + inFlight, 0),
    avgSuccessRate: meanOf(agents, ({ successRate }) => successRate),
    avgLoad: meanOf(agents, vaporaLoad),
  };
}

/** The definition of a metric, before any code exposes it. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
}

/** The three metrics of the document's "Prometheus Metrics". */
export const vaporaMetrics: readonly MetricDefinition[] = [
  { name: "vapora_task_assignments_total", type: "counter", help: "Total task assignments" },
  { name: "vapora_agent_current_load", type: "gauge", help: "Current agent load (0-1)" },
  { name: "vapora_assignment_score", type: "histogram", help: "Assignment score distribution" },
];

function meanOf<Item>(items: readonly Item[], measure: (item: Item) => number): number {
  if (items.length === 0) return 0;
  return items.reduce((total, item) => total + measure(item), 0) / items.length;
}

function checkAgents(agents: readonly VaporaAgent[]): void {
  checkObjects(agents, "agents");
  for (const [at, agent] of agents.entries()) {
    checkText(agent.id, `agents[${at}].id`);
    checkTerms(agent, `agents[${at}].`);
    if (!statuses.has(agent.status)) {
      refuse(
        `agents[${at}].status`,
        `must be one of ${[...statuses].join(", ")}, not ${String(agent.status)}`,
      );
    }
  }
}

function checkTerms({ successRate, inFlight, maxConcurrent }: ScoreTerms, prefix: string): void {
  if (!(Number.isFinite(successRate) && successRate >= 0 && successRate <= 1)) {
    refuse(`${prefix}successRate`, `must be from 0 to 1, not ${String(successRate)}`);
  }
  checkWhole(inFlight, `${prefix}inFlight`, 0);
  checkWhole(maxConcurrent, `${prefix}maxConcurrent`, 1);
}
