// Whether a kind's tasks go to one agent too often (VAPORA's ADR-018, "Alert if concentration detected"; the figures
// are ours, design section 10). One watch a kind, told of each assignment; whoever owns it decides when to ask.

import type { AgentId } from "../ids.ts";
import { limits } from "../limits.ts";

export interface ConcentrationAlert {
  readonly agent: AgentId;
  /** Of the last `limits.concentrationAssignments`, (0, 1]. */
  readonly share: number;
  /** 2/n + 0.2 */
  readonly threshold: number;
}

/** Remembers the last `limits.concentrationAssignments` assignments of one kind, no more. */
export class ConcentrationWatch {
  /** A ring: the oldest is overwritten. */
  readonly #agents: AgentId[] = [];
  readonly #countByAgent = new Map<AgentId, number>();
  #next = 0;

  assigned(agent: AgentId): void {
    const oldest = this.#agents[this.#next];
    if (oldest !== undefined) this.#count(oldest, -1);
    this.#agents[this.#next] = agent;
    this.#count(agent, 1);
    this.#next = (this.#next + 1) % limits.concentrationAssignments;
  }

  /**
   * Top share > 2/n + 0.2 of a kind served by n ≥ 2. With two agents that is never: one of two may well be the
   * better for everything.
   *
   * @param serving n, how many agents serve the kind now
   * @returns undefined while all is well, or fewer assignments than it takes are known
   */
  alert(serving: number): ConcentrationAlert | undefined {
    if (serving < 2 || this.#agents.length < limits.concentrationAssignments) return undefined;
    const threshold = 2 / serving + 0.2;
    const [agent, count] = this.#top();
    const share = count / this.#agents.length;
    return share > threshold ? { agent, share, threshold } : undefined;
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

  #count(agent: AgentId, change: 1 | -1): void {
    const count = (this.#countByAgent.get(agent) ?? 0) + change;
    if (count === 0) this.#countByAgent.delete(agent);
    else this.#countByAgent.set(agent, count);
  }
}
