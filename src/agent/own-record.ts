// What an agent observes of itself and says in its heartbeats: shown beside what the coordinator observed,
// never scored.
//
// Each mean is the plain mean of what is remembered. It fades as the coordinator's own records do: by half with each
// `limits.forgetHalfLifeAttempts` later attempts, and by half with each `limits.forgetHalfLifeMs` that pass.

import { limits } from "../limits.ts";
import type { AttemptEnd } from "./link.ts";

/** The most attempts that a record remembers, where attempts follow one another without a pause. */
const rememberedMax = 1 / (1 - 2 ** (-1 / limits.forgetHalfLifeAttempts));

export class OwnRecord {
  readonly #success = new FadingMean();
  readonly #latency = new FadingMean();

  /** In [0, 1]; undefined before the first attempt that says anything about the agent. */
  get successRate(): number | undefined {
    return this.#success.mean;
  }

  /** Mean of completed attempts, ms. */
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
  /** Values that the mean is made of, as far as they are remembered. */
  #remembered = 0;
  #notedAt = 0;

  note(value: number, nowMs: number): void {
    const faded = this.#remembered * 2 ** ((this.#notedAt - nowMs) / limits.forgetHalfLifeMs);
    this.#remembered = Math.min(faded + 1, rememberedMax);
    this.#notedAt = nowMs;
    this.mean = this.mean === undefined ? value : this.mean + (value - this.mean) / this.#remembered;
  }
}
