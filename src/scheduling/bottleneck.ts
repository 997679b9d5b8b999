// Which agents hold the swarm up (VAPORA's ADR-018, "Identify bottleneck agents"): those at their limit while a kind
// they serve waits, by their share of the time. Fed with what is so at an instant, which is taken to stay so until
// the next; so it is as exact as it is fed often.

import { assert } from "../assert.ts";
import type { AgentId, Instant } from "../ids.ts";

/** Of one agent at one instant. */
export interface AgentPressure {
  readonly agent: AgentId;
  /** Every place it has is taken. */
  readonly isAtLimit: boolean;
  /** A task that it could run is queued. */
  readonly isAwaited: boolean;
}

export interface BottleneckShare {
  readonly agent: AgentId;
  /** Of the time since it was first seen, [0, 1]. */
  readonly share: number;
  readonly observedMs: number;
}

interface Watched {
  readonly since: Instant;
  bottleneckMs: number;
  isBottleneck: boolean;
}

/** Knows the agents of the last observation and forgets the others: as large as the swarm, no larger. */
export class BottleneckWatch {
  #watchedByAgent = new Map<AgentId, Watched>();
  #at: Instant | undefined;

  /** @param at not before the last one */
  observe(at: Instant, agents: Iterable<AgentPressure>): void {
    this.#passTo(at);
    const watchedByAgent = new Map<AgentId, Watched>();
    for (const { agent, isAtLimit, isAwaited } of agents) {
      const watched = this.#watchedByAgent.get(agent) ?? { since: at, bottleneckMs: 0, isBottleneck: false };
      watched.isBottleneck = isAtLimit && isAwaited;
      watchedByAgent.set(agent, watched);
    }
    this.#watchedByAgent = watchedByAgent;
  }

  /** Those that were a bottleneck at all, the worst first, then by id. @param at not before the last one */
  shares(at: Instant): BottleneckShare[] {
    this.#passTo(at);
    const shares: BottleneckShare[] = [];
    for (const [agent, { since, bottleneckMs }] of this.#watchedByAgent) {
      const observedMs = at - since;
      if (bottleneckMs > 0) shares.push({ agent, share: bottleneckMs / observedMs, observedMs });
    }
    return shares.sort((a, b) => b.share - a.share || (a.agent < b.agent ? -1 : 1));
  }

  #passTo(at: Instant): void {
    const before = this.#at ?? at;
    assert(at >= before, "instants never go back");
    for (const watched of this.#watchedByAgent.values()) {
      if (watched.isBottleneck) watched.bottleneckMs += at - before;
    }
    this.#at = at;
  }
}
