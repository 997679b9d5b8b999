// When time alone gives the planner something to do: a timer is due, a gate opens (gates.ts), or a suspended agent
// may be tried with a probe. Whoever runs turns, the coordinator or a simulation, sleeps until then unless somebody
// asks for something. Kept from turn to turn, so that it costs what changed; one made anew answers the same.

import type { AgentId, Instant } from "../ids.ts";
import { nextDueAt, type SwarmState } from "../state/state.ts";
import { nextOpeningAt } from "./gates.ts";

export class Wake {
  readonly #state: SwarmState;
  /** Of those known, who is suspended for some kind. */
  readonly #suspended = new Set<AgentId>();

  constructor(state: SwarmState) {
    this.#state = state;
    this.touch(state.agentById.keys());
  }

  /** Something of these agents' rows changed. Must be called of each one before `nextAt`. */
  touch(agents: Iterable<AgentId>): void {
    for (const id of agents) {
      const isSuspended = (this.#state.agentById.get(id)?.suspensionByKind.size ?? 0) > 0;
      if (isSuspended) this.#suspended.add(id);
      else this.#suspended.delete(id);
    }
  }

  /** The earliest instant at which a turn may do something that one at `at` did not; undefined when time alone
   *  brings nothing. It may turn out to bring nothing.
   *  @param at of a turn that did all that was due */
  nextAt(at: Instant): Instant | undefined {
    const instants = [nextDueAt(this.#state), nextOpeningAt(this.#state, at), this.#nextProbeAt(at)];
    return instants.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a));
  }

  /** The end of the next back-off; one that is over already has had its chance. */
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
