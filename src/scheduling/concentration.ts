// Whether a kind's tasks go to one agent too often (VAPORA's ADR-018, "Alert if concentration detected"; the figures
// are ours). One watch a kind, told of each assignment; whoever owns it decides when to ask.

import { assert } from "../assert.ts";
import type { AgentId } from "../ids.ts";
import { limits } from "../limits.ts";

export interface ConcentrationAlert {
  readonly agent: AgentId;
  /** Of the last `limits.concentrationAssignments`, (0, 1]. */
  readonly share: number;
  /** 2/n + `limits.concentrationSlack` */
  readonly threshold: number;
}

/** Remembers the last `limits.concentrationAssignments` assignments of one kind, no more. */
export class ConcentrationWatch {
  /** Rings, side by side: the oldest is overwritten. */
  readonly #agents: AgentId[] = [];
  readonly #servings: number[] = [];
  readonly #countByAgent = new Map<AgentId, number>();
  readonly #countByServing = new Map<number, number>();
  #next = 0;

  /** @param serving n, how many agents served the kind at that moment, ≥ 1 */
  assigned(agent: AgentId, serving: number): void {
    assert(serving >= 1, "whoever is assigned a task serves its kind");
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

  /** Top share > 2/n + `limits.concentrationSlack`; where n changed meanwhile, 2/n is its mean over these
   *  assignments, so that agents that join a busy one raise no alarm. With one or two agents that is never: one of
   *  two may well be the better for everything.
   *
   *  @returns undefined while all is well, or fewer assignments than it takes are known
   * */
  alert(): ConcentrationAlert | undefined {
    if (this.#agents.length < limits.concentrationAssignments) return undefined;
    const [agent, count] = this.#top();
    const share = count / this.#agents.length;
    const threshold = this.#threshold();
    return share > threshold ? { agent, share, threshold } : undefined;
  }

  #threshold(): number {
    let fairShare = 0;
    for (const [serving, count] of this.#countByServing) fairShare += count / this.#agents.length / serving;
    return 2 * fairShare + limits.concentrationSlack;
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
