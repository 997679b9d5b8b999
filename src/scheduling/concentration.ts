// Whether a kind's tasks go to the same agent too often (VAPORA's ADR-018, "Alert if concentration detected"; the
// figures are ours). One watch per kind, notified of each assignment; the owner decides when to ask.

import { assert } from "../assert.ts";
import type { AgentId } from "../ids.ts";
import { limits } from "../limits.ts";

export interface ConcentrationAlert {
  readonly agent: AgentId;
  /** The agent's share of the `assignments`, (0, 1]. */
  readonly share: number;
  /** Mean of `concentrationThreshold(n)` over `assignments`. */
  readonly threshold: number;
  /**
   * The counted assignments with n ≥ 2, from `limits.concentrationAssignmentsMin` to
   * `limits.concentrationAssignments`.
   */
  readonly assignments: number;
}

/**
 * Highest permitted share of an agent in a kind's assignments: min(2/n + 0.2, 0.95).
 *
 * @param n number of agents that could have served the kind, ≥ 2: a single agent gets everything
 */
export function concentrationThreshold(n: number): number {
  assert(n >= 2, "a threshold needs two agents");
  return Math.min(2 / n + limits.concentrationSlack, limits.concentrationShareMax);
}

/** Remembers the last `limits.concentrationAssignments` assignments of a kind with two or more possible agents. */
export class ConcentrationWatch {
  /** Rings, side by side: the oldest entry is overwritten. */
  readonly #agents: AgentId[] = [];
  readonly #servings: number[] = [];
  readonly #countByAgent = new Map<AgentId, number>();
  readonly #countByServing = new Map<number, number>();
  #next = 0;
  /** Last assignments in a row with n = 1, and the agent of the last assignment. */
  #soleRun = 0;
  #soleAgent: AgentId | undefined;

  /** @param serving n, the number of agents that served the kind at that moment, ≥ 1 */
  assigned(agent: AgentId, serving: number): void {
    assert(serving >= 1, "whoever is assigned a task serves its kind");
    if (serving === 1) {
      this.#soleRun += 1;
      this.#soleAgent = agent;
      return;
    }
    this.#soleRun = 0;
    const at = this.#next;
    const [oldestAgent, oldestServing] = [this.#agents[at], this.#servings[at]];
    if (oldestAgent !== undefined) changeBy(this.#countByAgent, oldestAgent, -1);
    if (oldestServing !== undefined) changeBy(this.#countByServing, oldestServing, -1);
    this.#agents[at] = agent;
    this.#servings[at] = serving;
    changeBy(this.#countByAgent, agent, 1);
    changeBy(this.#countByServing, serving, 1);
    this.#next = (at + 1) % limits.concentrationAssignments;
  }

  /**
   * The top share, if above the threshold. Where n changed meanwhile, the threshold is the mean over the assignments,
   * so that agents that join a busy agent raise no alarm.
   *
   * @returns undefined while the share is within the threshold, while fewer than `limits.concentrationAssignmentsMin`
   *   assignments are known, and while a single agent serves the kind (`soleAgent`)
   */
  alert(): ConcentrationAlert | undefined {
    const assignments = this.#agents.length;
    if (assignments < limits.concentrationAssignmentsMin || this.soleAgent() !== undefined) return undefined;
    const [agent, count] = this.#top();
    const share = count / assignments;
    const threshold = this.#threshold();
    return share > threshold ? { agent, share, threshold, assignments } : undefined;
  }

  /**
   * The top share, (0, 1], whatever the threshold.
   *
   * @returns undefined while fewer than `limits.concentrationAssignmentsMin` assignments are known
   */
  share(): number | undefined {
    const assignments = this.#agents.length;
    if (assignments < limits.concentrationAssignmentsMin) return undefined;
    return this.#top()[1] / assignments;
  }

  /**
   * The agent that serves the kind alone.
   *
   * @returns undefined unless n was 1 for the last `limits.concentrationAssignmentsMin` assignments
   */
  soleAgent(): AgentId | undefined {
    return this.#soleRun >= limits.concentrationAssignmentsMin ? this.#soleAgent : undefined;
  }

  #threshold(): number {
    let total = 0;
    for (const [serving, count] of this.#countByServing) total += count * concentrationThreshold(serving);
    return total / this.#agents.length;
  }

  /** Most often assigned; of equals, the lower id. */
  #top(): readonly [AgentId, number] {
    let top: readonly [AgentId, number] | undefined;
    for (const entry of this.#countByAgent) {
      const [agent, count] = entry;
      if (top === undefined || count > top[1] || (count === top[1] && agent < top[0])) top = entry;
    }
    return top as readonly [AgentId, number];
  }
}

/** Counts of 0 are not kept. */
function changeBy<Key>(countByKey: Map<Key, number>, key: Key, change: 1 | -1): void {
  const count = (countByKey.get(key) ?? 0) + change;
  if (count === 0) countByKey.delete(key);
  else countByKey.set(key, count);
}
