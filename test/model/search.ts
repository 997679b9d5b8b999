// Searches schedules of the model of segments: drawn from seeds, or all schedules with a limited number of
// deviations from the fault-free run.

import { SeededRandom } from "../../src/sim/random.ts";
import type { Choose } from "./log-service.ts";
import { type Violation, World, type WorldOptions } from "./world.ts";

export type Setting = Omit<WorldOptions, "choose" | "isTraced">;

export interface Found {
  readonly schedule: string;
  readonly violations: readonly Violation[];
}

/** Probability of outcomes other than 0. */
const likelihood: Readonly<Record<string, number>> = { turn: 1, fate: 0.08, fault: 0.05, late: 1 };
const ELSE = 0.5;

export function runSeed(setting: Setting, seed: number, isTraced = false) {
  const random = new SeededRandom(`${seed}`);
  const choose: Choose = (count, label) => {
    if (label === "turn") return random.below(count);
    if (!random.chance(likelihood[label] ?? ELSE)) return 0;
    return random.below(count);
  };
  const world = new World({ ...setting, choose, isTraced });
  return { violations: world.run(), trace: world.trace };
}

export function searchSeeds(setting: Setting, seeds: Iterable<number>, foundMax = 1): Found[] {
  const found: Found[] = [];
  for (const seed of seeds) {
    const { violations } = runSeed(setting, seed);
    if (violations.length > 0) found.push({ schedule: `seed ${seed}`, violations });
    if (found.length >= foundMax) break;
  }
  return found;
}

/** @param deviations outcome by number of the choice, from 0 */
export function runDeviations(setting: Setting, deviations: ReadonlyMap<number, number>, isTraced = false) {
  const counts: number[] = [];
  const choose: Choose = (count) => {
    counts.push(count);
    return Math.min(count - 1, deviations.get(counts.length - 1) ?? 0);
  };
  const world = new World({ ...setting, choose, isTraced });
  return { violations: world.run(), trace: world.trace, counts };
}

/** Every schedule with at most `depth` deviations. */
export function searchDeviations(
  setting: Setting,
  depth: number,
  foundMax = 1,
): { found: Found[]; schedules: number } {
  const found: Found[] = [];
  let schedules = 0;
  const visit = (deviations: ReadonlyMap<number, number>, from: number, left: number) => {
    const { violations, counts } = runDeviations(setting, deviations);
    schedules += 1;
    if (violations.length > 0) {
      found.push({
        schedule: [...deviations].map(([at, choice]) => `${at}:${choice}`).join(","),
        violations,
      });
      return;
    }
    if (left === 0) return;
    for (let at = from; at < counts.length && found.length < foundMax; at += 1)
      for (let choice = 1; choice < (counts[at] ?? 1); choice += 1)
        visit(new Map([...deviations, [at, choice]]), at + 1, left - 1);
  };
  visit(new Map(), 0, depth);
  return { found, schedules };
}
