// The agent's own statistics, sent in heartbeats. Shown beside the coordinator's observations, never scored.
//
// Each mean is the plain mean of the remembered values. Weights fade as in the coordinator's records: by half
// with each `limits.forgetHalfLifeAttempts` later attempts, and by half with each `limits.forgetHalfLifeMs`
// that pass.

import { limits } from "../limits.ts";
import type { AttemptEnd } from "./link.ts";

/** Maximum sum of weights, reached by attempts without pauses. */
const rememberedMax = 1 / (1 - 2 ** (-1 / limits.forgetHalfLifeAttempts));

export class OwnRecord {
  readonly #success = new FadingMean();
  readonly #latency = new FadingMean();

  /** In [0, 1]. Undefined before the first completed or failed attempt. */
  get successRate(): number | undefined {
    return this.#success.mean;
  }

  /** Mean duration of completed attempts, ms. */
  get latencyMs(): number | undefined {
    return this.#latency.mean;
  }

  /** @param nowMs monotonic */
  note({ outcome, latencyMs }: AttemptEnd, nowMs: number): void {
    if (outcome !== "completed" && outcome !== "failed") return;
    this.#success.note(outcome === "completed" ? 1 : 0, nowMs);
    if (outcome === "completed" && latencyMs !== undefined) this.#latency.note(latencyMs, nowMs);
  }
}

class FadingMean {
  mean: number | undefined;
  /** Sum of the faded weights of the values in the mean. */
  #remembered = 0;
  #notedAt = 0;

  note(value: number, nowMs: number): void {
    const faded = this.#remembered * 2 ** ((this.#notedAt - nowMs) / limits.forgetHalfLifeMs);
    this.#remembered = Math.min(faded + 1, rememberedMax);
    this.#notedAt = nowMs;
    this.mean = this.mean === undefined ? value : this.mean + (value - this.mean) / this.#remembered;
  }
}
