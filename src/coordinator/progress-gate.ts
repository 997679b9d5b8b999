// How much of what an agent says of its progress the leader listens to: so many reports a second for each of its places,
// which is as many as the SDK sends. An agent that does not hold back costs the leader a look at the subject for each
// report too many, and nobody else anything. One bucket an agent, filled as time passes.

import type { Clock } from "../clock.ts";
import { type AgentRow, placesOf, type SwarmState } from "../core/state.ts";
import type { AgentId } from "../ids.ts";
import { limits } from "../limits.ts";

interface Bucket {
  /** Reports that may still come. */
  left: number;
  filledMonotonicMs: number;
  /** When the last one was turned away. */
  refusedMonotonicMs: number;
}

export type Admission = "heard" | "dropped" | "dropped-first";

export class ProgressGate {
  readonly #clock: Clock;
  readonly #bucketById = new Map<AgentId, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns `dropped-first` for the first that is dropped after a while in which none was */
  admit(row: AgentRow): Admission {
    const bucket = this.#filled(row);
    if (bucket.left >= 1) {
      bucket.left -= 1;
      return "heard";
    }
    const now = bucket.filledMonotonicMs;
    const isFirst = now - bucket.refusedMonotonicMs > limits.progressFloodQuietMs;
    bucket.refusedMonotonicMs = now;
    return isFirst ? "dropped-first" : "dropped";
  }

  /** Drops what belongs to agents that are no more. */
  sweep(state: SwarmState): void {
    for (const id of this.#bucketById.keys())
      if (state.agentById.get(id)?.online !== true) this.#bucketById.delete(id);
  }

  #filled(row: AgentRow): Bucket {
    const now = this.#clock.monotonicMs();
    const most = placesOf(row) * limits.progressPerPlaceMax;
    const known = this.#bucketById.get(row.id);
    if (known === undefined) {
      const full = { left: most, filledMonotonicMs: now, refusedMonotonicMs: Number.NEGATIVE_INFINITY };
      this.#bucketById.set(row.id, full);
      return full;
    }
    known.left = Math.min(most, known.left + (most * (now - known.filledMonotonicMs)) / 1_000);
    known.filledMonotonicMs = now;
    return known;
  }
}
