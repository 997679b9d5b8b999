// A Poisson stream of tasks of a single user, for scenarios in which agents differ and users do not.

import type { SeededRandom } from "../random.ts";
import type { SimTask } from "./dispatcher.ts";

export interface TaskStream {
  readonly count: number;
  /** Mean time between arrivals, ms. */
  readonly everyMs: number;
  /** Split for arrivals and sizes. */
  readonly random: SeededRandom;
  /** Called once per task, in order. */
  readonly kindOf: () => string;
}

/** In order of arrival; sizes have mean 1. */
export function drawTasks({ count, everyMs, random, kindOf }: TaskStream): SimTask[] {
  const arrivals = random.split("arrivals");
  const sizes = random.split("sizes");
  let at = 0;
  return Array.from({ length: count }, (_, index): SimTask => {
    at += arrivals.exponential(everyMs);
    return {
      index,
      arrivesAt: Math.round(at),
      user: "u",
      project: "p",
      kind: kindOf(),
      weight: 1,
      size: sizes.exponential(1),
    };
  });
}
