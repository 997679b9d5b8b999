// All scenarios, in the order of docs/results.md.

import { budgetRace } from "./budget-race.ts";
import { costlyUsers } from "./costly-users.ts";
import { blackHole, flaky } from "./failing.ts";
import { herd } from "./herd.ts";
import { joiner, slowOnce } from "./latecomers.ts";
import { locoBurst, locoMdash, locoOverload, locoSpike, locoSustainable } from "./loco.ts";
import { lucio1, lucio2 } from "./lucio.ts";
import { mixedKinds, newcomer } from "./newcomer.ts";
import type { Scenario } from "./scenario.ts";
import { equal4, skew16 } from "./skew.ts";
import { trace } from "./trace.ts";
import { vaporaExamples } from "./vapora.ts";

export const scenarios: readonly Scenario[] = [
  locoBurst,
  locoOverload,
  locoSustainable,
  locoSpike,
  locoMdash,
  newcomer,
  mixedKinds,
  costlyUsers,
  lucio1,
  lucio2,
  vaporaExamples,
  skew16,
  equal4,
  slowOnce,
  joiner,
  flaky,
  herd,
  blackHole,
  budgetRace,
  trace,
];

/** @returns undefined for an unknown name */
export function scenarioNamed(name: string): Scenario | undefined {
  return scenarios.find((scenario) => scenario.name === name);
}
