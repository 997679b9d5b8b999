// How good an agent is for the next task of a kind: its success rate against its load. Not here: whether the agent may
// have the task at all (eligibility.ts). A score never overrides a filter.

/** The inputs of an agent's score. */
export interface ScoreTerms {
  /** [0, 1] */
  readonly successRate: number;
  /** Open attempts, ≥ 0; prefetched attempts count. */
  readonly inFlight: number;
  /** ≥ 1 */
  readonly maxConcurrent: number;
}

/** `current_load` of VAPORA's ADR-018: 0 idle, 1 at capacity; above 1 with prefetched attempts. */
export function vaporaLoad(terms: ScoreTerms): number {
  return terms.inFlight / terms.maxConcurrent;
}

/** `assignment_score` of VAPORA's ADR-018: `success_rate / (1 + load)`, in [0, 1]. */
export function vaporaScore(terms: ScoreTerms): number {
  return terms.successRate / (1 + vaporaLoad(terms));
}

/**
 * `successRate · speed / (1 + load + λ·L(agent))` (docs/scheduling.md), in [0, 1]. Without a backlog or with λ = 0, and
 * with a speed of 1, the score is VAPORA's to the bit.
 *
 * @param speed (0, 1]
 * @param backlogCost λ·L(agent), ≥ 0
 */
export function score(terms: ScoreTerms, speed: number, backlogCost: number): number {
  return (terms.successRate * speed) / (1 + vaporaLoad(terms) + backlogCost);
}
