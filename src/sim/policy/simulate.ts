// Performs runs of a scenario and combines their results. Runs and results are values, so a run gives the same
// result here and in a thread (seed-threads.ts).

import { assert } from "../../assert.ts";
import { SeededRandom } from "../random.ts";
import type { RunResult, Scenario } from "./scenario.ts";
import { scenarioNamed } from "./scenarios.ts";
import { type Estimate, estimateOf } from "./statistics.ts";
import type { TraceRequest } from "./trace-rows.ts";

export interface RunRequest {
  readonly scenario: string;
  readonly rule: string;
  /** [0, 1] */
  readonly alpha: number;
  /** A whole number. */
  readonly seed: number;
  readonly wantsTimeline: boolean;
  /** Share of the scenario's tasks, (0, 1]; absent: all. */
  readonly share?: number;
}

/** Combined results of all runs of one rule: `--json` prints its name as `rules`. */
export interface RuleReport {
  readonly scenario: string;
  readonly rule: string;
  /** [0, 1]; null for a rule that does not read it. */
  readonly alpha: number | null;
  readonly seeds: readonly number[];
  /** Over the seeds with the figure. Null: the scenario has the figure, but the rule's runs did not measure it. */
  readonly metrics: Readonly<Record<string, Estimate | null>>;
}

export interface SimulationRequest {
  readonly scenario: Scenario;
  readonly rules: readonly string[];
  readonly alpha: number;
  readonly seeds: readonly number[];
  /** Timelines of the first seed only. */
  readonly wantsTimelines: boolean;
}

/** Only the load function reads α. Waggle's rule would read α to compare tasks held beyond the capacity, but
 *  here nothing is sent ahead. */
const rulesThatReadAlpha: ReadonlySet<string> = new Set(["loco", "loco-starvation-limit"]);

/** True if α can change the figures. @param rule by its name in any scenario */
export function readsAlpha(rule: string): boolean {
  return rulesThatReadAlpha.has(rule);
}

export function runOnce(request: RunRequest, trace?: readonly TraceRequest[]): RunResult {
  const { rule, alpha, seed, wantsTimeline, share = 1 } = request;
  const scenario = scenarioNamed(request.scenario);
  assert(scenario !== undefined && Object.hasOwn(scenario.rules, rule), `${rule} runs ${request.scenario}`);
  const random = new SeededRandom(`${scenario.name}/${seed}`);
  return scenario.run({
    rule,
    alpha,
    random,
    wantsTimeline,
    share,
    ...(trace === undefined ? {} : { trace }),
  });
}

/** Rule by rule, seed by seed. A scenario without random draws runs once. */
export function runsOf({ scenario, rules, alpha, seeds, wantsTimelines }: SimulationRequest): RunRequest[] {
  const drawn = scenario.isDeterministic === true ? seeds.slice(0, 1) : seeds;
  return rules.flatMap((rule) =>
    drawn.map((seed, at) => ({
      scenario: scenario.name,
      rule,
      alpha,
      seed,
      wantsTimeline: wantsTimelines && at === 0,
    })),
  );
}

/** One report per rule, in the order of the rules. @param results in the order of the runs */
export function reportsOf(runs: readonly RunRequest[], results: readonly RunResult[]): RuleReport[] {
  const byRule = new Map<string, { readonly runs: RunRequest[]; readonly metrics: RunResult["metrics"][] }>();
  for (const [at, run] of runs.entries()) {
    const metrics = results[at]?.metrics ?? {};
    const known = byRule.get(run.rule);
    if (known === undefined) byRule.set(run.rule, { runs: [run], metrics: [metrics] });
    else {
      known.runs.push(run);
      known.metrics.push(metrics);
    }
  }
  return [...byRule].map(([rule, { runs: ofRule, metrics }]) => ({
    scenario: ofRule[0]?.scenario ?? "",
    rule,
    alpha: readsAlpha(rule) ? (ofRule[0]?.alpha ?? null) : null,
    seeds: ofRule.map(({ seed }) => seed),
    metrics: estimates(metrics, scenarioNamed(ofRule[0]?.scenario ?? "")),
  }));
}

function estimates(
  all: readonly RunResult["metrics"][],
  scenario: Scenario | undefined,
): Record<string, Estimate | null> {
  const names = new Set([...all, scenario?.metrics ?? {}].flatMap((metrics) => Object.keys(metrics)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = all.flatMap((metrics) => (metrics[name] === undefined ? [] : [metrics[name]]));
      return [name, values.length === 0 ? null : estimateOf(values, scenario?.isDeterministic !== true)];
    }),
  );
}
