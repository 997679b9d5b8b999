// The claims of docs/results.md, on fewer seeds and smaller runs: each bound with its slack from
// requirements.ts. `npm run simulate:all` checks the claims themselves.

import { describe, expect, it } from "vitest";
import { holds, meansOf, type Runs, requirements, runsKey } from "../../src/sim/policy/requirements.ts";
import { scenarioNamed } from "../../src/sim/policy/scenarios.ts";
import { type RuleReport, reportsOf, runOnce } from "../../src/sim/policy/simulate.ts";

/** Of the 20 seeds of a full run. */
const SEEDS = 8;
/** Larger scenarios are reduced to this many tasks, on fewer seeds. */
const TASKS_MAX = 8_000;

function reportOf({ scenario: name, rule, alpha = 0.25 }: Runs): RuleReport {
  const scenario = scenarioNamed(name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const share = Math.min(1, TASKS_MAX / scenario.tasks);
  const seeds = scenario.isDeterministic === true ? 1 : share < 1 ? 2 : SEEDS;
  const runs = Array.from({ length: seeds }, (_, seed) => ({
    scenario: name,
    rule,
    alpha,
    seed,
    wantsTimeline: false,
    share,
  }));
  const [report] = reportsOf(
    runs,
    runs.map((run) => runOnce(run)),
  );
  return report as RuleReport;
}

const known = new Map<string, RuleReport>();

function reportsFor(runs: readonly Runs[]): RuleReport[] {
  return runs.map((one) => {
    const report = known.get(runsKey(one)) ?? reportOf(one);
    known.set(runsKey(one), report);
    return report;
  });
}

describe.each([...new Set(requirements.map(({ runs }) => runs[0]?.scenario))])("%s", (scenario) => {
  const own = requirements.filter((one) => one.runs[0]?.scenario === scenario);
  it.each(own.map((requirement) => [requirement.sentence, requirement] as const))("%s", (_, requirement) => {
    const figure = requirement.figure(meansOf(reportsFor(requirement.runs)));
    const bounds = { figure, atLeast: requirement.atLeast, atMost: requirement.atMost };
    expect(holds(requirement, figure, requirement.slack ?? 0), JSON.stringify(bounds)).toBe(true);
  });
});
