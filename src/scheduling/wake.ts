// When time alone gives the planner work: a timer is due, a gate opens (gates.ts), or a suspended agent may be probed.
// The coordinator or a simulation sleeps until then unless a message arrives. Kept from turn to turn, so that the cost
// is that of the changes; a new instance answers the same.

import type { AgentId, Instant } from "../ids.ts";
import { nextDueAt, type SwarmState } from "../state/state.ts";
import { nextOpeningAt } from "./gates.ts";

export class Wake {
  readonly #state: SwarmState;
  /** Known agents that are suspended for some kind. */
  readonly #suspended = new Set<AgentId>();

  constructor(state: SwarmState) {
    this.#state = state;
    this.touch(state.agentById.keys());
  }

  /** Notes changes of these agents' rows. Must be called for each change before `nextAt`. */
  touch(agents: Iterable<AgentId>): void {
    for (const id of agents) {
      const isSuspended = (this.#state.agentById.get(id)?.suspensionByKind.size ?? 0) > 0;
      if (isSuspended) this.#suspended.add(id);
      else this.#suspended.delete(id);
    }
  }

  /**
   * The earliest instant at which a turn may do more than a turn at `at`; undefined when time alone brings nothing. A
   * turn at the result may still find nothing.
   * @param at journal time of a turn that did all due work
   */
  nextAt(at: Instant): Instant | undefined {
    const instants = [nextDueAt(this.#state), nextOpeningAt(this.#state, at), this.#nextProbeAt(at)];
    return instants.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a));
  }

  /** The end of the next back-off; a back-off that has ended already had its chance. */
  #nextProbeAt(at: Instant): Instant | undefined {
    if (this.#state.counts.queued === 0) return undefined;
    let earliest: Instant | undefined;
    for (const id of this.#suspended) {
      for (const { until } of this.#state.agentById.get(id)?.suspensionByKind.values() ?? []) {
        if (until > at && (earliest === undefined || until < earliest)) earliest = until;
      }
    }
    return earliest;
  }
}
