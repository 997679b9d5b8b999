// docs/results.md matches the code, as far as a second of computing can show: every figure of the scenarios
// without randomness. After a change of a rule, `npm run simulate:all` rewrites the page.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { estimateText } from "../../src/cli/simulate/report-text.ts";
import { scenarios } from "../../src/sim/policy/scenarios.ts";
import { reportsOf, runOnce, runsOf } from "../../src/sim/policy/simulate.ts";

const page = readFileSync("docs/results.md", "utf8");

/** The first table below a scenario's heading, as rows of cells. */
function tableOf(scenario: string): string[][] {
  const section = page.split(`\n## ${scenario}\n`)[1] ?? "";
  const lines = section.split("\n");
  const start = lines.findIndex((line) => line.startsWith("| rule"));
  const end = lines.findIndex((line, at) => at > start && line === "");
  return lines.slice(start, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

describe("docs/results.md", () => {
  it.each(
    scenarios
      .filter(({ isDeterministic }) => isDeterministic === true)
      .map((one) => [one.name, one] as const),
  )("has the figures of %s", (name, scenario) => {
    const rules = Object.keys(scenario.rules);
    const runs = runsOf({ scenario, rules, alpha: 0.25, seeds: [0], wantsTimelines: false });
    const reports = reportsOf(
      runs,
      runs.map((run) => runOnce(run)),
    );
    const [heads = [], , ...rows] = tableOf(name);
    const expected = reports.map((report) => [
      report.rule,
      ...heads.slice(1).map((head) => estimateText(report.metrics[head])),
    ]);
    expect(rows).toEqual(expected);
  });

  it("claims nothing that does not hold", () => {
    expect(page).toContain("| holds |");
    expect(page).not.toContain("does not hold");
  });

  it("has every scenario", () => {
    const headings = scenarios.filter(({ name }) => !page.includes(`\n## ${name}\n`)).map(({ name }) => name);
    expect(headings).toEqual([]);
  });
});
