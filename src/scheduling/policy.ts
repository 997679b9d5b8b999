// The constants of the rules that an operator may set for a swarm. Not bounds: those stand in src/limits.ts.

/** How agents are ranked (design section 7.3). */
export interface SchedulingPolicy {
  /** λ: what an agent's own backlog costs it, as a share of what being full costs. 0 gives VAPORA's formula. */
  readonly lambda: number;
  /** α of LOCO's load function over the agents' backlogs, [0, 1]. */
  readonly alpha: number;
}

export const defaultPolicy: SchedulingPolicy = {
  // The load already counts prefetched tasks; a quarter more breaks ties between equally full agents in favour
  // of the one that gets through its backlog, and never outweighs a clearly better success rate.
  lambda: 0.25,
  // LOCO's "balanced", its default for most workloads.
  alpha: 0.25,
};
