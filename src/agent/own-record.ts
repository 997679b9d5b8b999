// What an agent observes of itself and says in its heartbeats: shown beside what the coordinator observed,
// never scored. Recent attempts count most.

import { limits } from "../limits.ts";
import type { AttemptEnd } from "./link.ts";

const share = 1 - 2 ** (-1 / limits.forgetHalfLifeAttempts);

export class OwnRecord {
  /** In [0, 1]; undefined before the first attempt that says anything about the agent. */
  successRate: number | undefined;
  /** Mean of completed attempts, ms. */
  latencyMs: number | undefined;

  note({ outcome, latencyMs }: AttemptEnd): void {
    if (outcome === "completed") {
      this.successRate = moved(this.successRate, 1);
      if (latencyMs !== undefined) this.latencyMs = moved(this.latencyMs, latencyMs);
    } else if (outcome === "failed") {
      this.successRate = moved(this.successRate, 0);
    }
  }
}

function moved(mean: number | undefined, towards: number): number {
  return mean === undefined ? towards : mean + (towards - mean) * share;
}
