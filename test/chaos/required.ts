// How soon a swarm has to be back. Not here: how it is measured (figures.ts).

import type { Figure } from "./figures.ts";

/** By T, ms. */
const requiredOfLeader: Readonly<Record<number, number>> = { 1000: 2_000, 3000: 5_000 };

/** ms; undefined where nothing is asked. Who is stopped is as silent as who is killed, so the same is asked. */
export function requiredMsOf(figure: Figure, leaderTimeoutMs: number): number | undefined {
  switch (figure) {
    case "leader killed → next accept":
    case "leader stopped → next accept":
      return requiredOfLeader[leaderTimeoutMs];
    case "stream leader killed → next accept":
    case "stream leader stopped → next accept":
      return 15_000;
    case "agent killed → reassigned":
      return 12_000;
    default:
      return undefined;
  }
}
