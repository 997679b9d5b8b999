// Agents that hold the swarm up (VAPORA's ADR-018, "Identify bottleneck agents"): at their limit while a kind that they
// serve waits. Measured as a share of the last `limits.bottleneckWindowMs`. An observation counts as valid until the
// next observation, so accuracy grows with their frequency.

import { assert } from "../assert.ts";
import type { AgentId, Instant } from "../ids.ts";
import { limits } from "../limits.ts";

/** The state of one agent at one instant. */
export interface AgentPressure {
  readonly agent: AgentId;
  /** All capacity of the agent is occupied. */
  readonly isAtLimit: boolean;
  /** A task that the agent could run is queued. */
  readonly isAwaited: boolean;
}

export interface BottleneckShare {
  readonly agent: AgentId;
  /** Share of the observed time in which the agent was a bottleneck, [0, 1]. */
  readonly share: number;
  /** Since the first observation, at most the window. */
  readonly observedMs: number;
}

interface Watched {
  readonly since: Instant;
  /** A ring of the window's steps: time as a bottleneck in each. */
  readonly msByStep: number[];
  isBottleneck: boolean;
  /** The number of the last observation with the agent. */
  seenIn: number;
}

const { bottleneckSteps: steps } = limits;
const stepMs = limits.bottleneckWindowMs / steps;

/**
 * Knows the agents of the last observation and forgets all others, so its size is the swarm's. The window is made of
 * whole steps and the current step, so it is shorter than stated by less than a step.
 */
export class BottleneckWatch {
  readonly #watchedByAgent = new Map<AgentId, Watched>();
  #at: Instant | undefined;
  #observations = 0;

  /** @param at not before the last instant */
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

  /** Agents with any time as a bottleneck, the worst first, then by id. @param at not before the last instant */
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
