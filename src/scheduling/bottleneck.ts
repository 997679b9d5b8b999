// Which agents hold the swarm up (VAPORA's ADR-018, "Identify bottleneck agents"): those at their limit while a kind
// they serve waits, by their share of the last `limits.bottleneckWindowMs`. Fed with what is so at an instant, which
// is taken to stay so until the next; so it is as exact as it is fed often.

import { assert } from "../assert.ts";
import type { AgentId, Instant } from "../ids.ts";
import { limits } from "../limits.ts";

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
  /** Of the time it was observed, [0, 1]. */
  readonly share: number;
  /** Since it was first seen, at most the window. */
  readonly observedMs: number;
}

interface Watched {
  readonly since: Instant;
  /** A ring of the window's steps: time as a bottleneck in each. */
  readonly msByStep: number[];
  isBottleneck: boolean;
  /** In which observation it was last. */
  seenIn: number;
}

const { bottleneckSteps: steps } = limits;
const stepMs = limits.bottleneckWindowMs / steps;

/**
 * Knows the agents of the last observation and forgets the others: as large as the swarm, no larger. The window is
 * made of whole steps and the one under way, so it is shorter than it should be by less than a step.
 */
export class BottleneckWatch {
  readonly #watchedByAgent = new Map<AgentId, Watched>();
  #at: Instant | undefined;
  #observations = 0;

  /** @param at not before the last one */
  observe(at: Instant, agents: Iterable<AgentPressure>): void {
    this.#passTo(at);
    this.#observations += 1;
    for (const { agent, isAtLimit, isAwaited } of agents) {
      const watched = this.#watchedByAgent.get(agent) ?? this.#newlyWatched(agent, at);
      watched.isBottleneck = isAtLimit && isAwaited;
      watched.seenIn = this.#observations;
    }
    for (const [agent, { seenIn }] of this.#watchedByAgent)
      if (seenIn !== this.#observations) this.#watchedByAgent.delete(agent);
  }

  /** Those that were a bottleneck at all, the worst first, then by id. @param at not before the last one */
  shares(at: Instant): BottleneckShare[] {
    this.#passTo(at);
    const windowFrom = (stepOf(at) - steps + 1) * stepMs;
    const shares: BottleneckShare[] = [];
    for (const [agent, { since, msByStep }] of this.#watchedByAgent) {
      const observedMs = at - Math.max(since, windowFrom);
      const bottleneckMs = msByStep.reduce((total, ms) => total + ms, 0);
      if (bottleneckMs > 0) shares.push({ agent, share: bottleneckMs / observedMs, observedMs });
    }
    return shares.sort((a, b) => b.share - a.share || (a.agent < b.agent ? -1 : 1));
  }

  #passTo(at: Instant): void {
    const before = this.#at ?? at;
    assert(at >= before, "instants never go back");
    const stepBefore = stepOf(before);
    for (let step = Math.max(stepBefore, stepOf(at) - steps + 1); step <= stepOf(at); step += 1) {
      const passedMs = Math.min(at, (step + 1) * stepMs) - Math.max(before, step * stepMs);
      for (const { msByStep, isBottleneck } of this.#watchedByAgent.values()) {
        const place = step % steps;
        const keptMs = step === stepBefore ? (msByStep[place] ?? 0) : 0; // of this step, not of a window ago
        msByStep[place] = keptMs + (isBottleneck ? passedMs : 0);
      }
    }
    this.#at = at;
  }

  #newlyWatched(agent: AgentId, since: Instant): Watched {
    const msByStep = new Array<number>(steps).fill(0);
    const watched = { since, msByStep, isBottleneck: false, seenIn: this.#observations };
    this.#watchedByAgent.set(agent, watched);
    return watched;
  }
}

function stepOf(at: number): number {
  return Math.floor(at / stepMs);
}
