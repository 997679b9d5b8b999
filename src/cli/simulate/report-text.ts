// The figures of a simulation as tables. The rows are rules or figures, whichever are more, so that the table stays
// narrow. The meaning of each figure follows below.

import type { Scenario } from "../../sim/policy/scenario.ts";
import { scenarios } from "../../sim/policy/scenarios.ts";
import type { RuleReport } from "../../sim/policy/simulate.ts";
import type { Estimate } from "../../sim/policy/statistics.ts";
import type { Output } from "../output.ts";
import { type Column, GAP, renderTable } from "../table.ts";

type View = Pick<Output, "columns" | "colors">;

/** All scenarios with their descriptions and rules. */
export function listText(view: View): string {
  const { colors } = view;
  const blocks = scenarios.map(({ name, summary, rules }) =>
    [colors.bold(name), `  ${summary}`, colors.dim(`  rules: ${Object.keys(rules).join(", ")}`)].join("\n"),
  );
  return `${blocks.join("\n")}\n\nwaggle simulate SCENARIO --compare all runs one under all its rules.`;
}

export function reportText(scenario: Scenario, reports: readonly RuleReport[], view: View): string {
  const { colors } = view;
  const names = figureNames(reports);
  const meanings = names.map((name) => `  ${name.padEnd(widest(names))}  ${scenario.metrics[name] ?? ""}`);
  const rules = reports.map(({ rule }) => rule);
  const said = rules.map((rule) => `  ${rule.padEnd(widest(rules))}  ${scenario.rules[rule] ?? ""}`);
  return [
    `${colors.bold(scenario.name)}  ${scenario.summary}`,
    colors.dim(conditions(scenario, reports)),
    "",
    tableOf(reports, names, view),
    "",
    ...said.map((line) => colors.dim(line)),
    ...meanings.map((line) => colors.dim(line)),
  ].join("\n");
}

/** In order of first appearance. */
export function figureNames(reports: readonly RuleReport[]): string[] {
  return [...new Set(reports.flatMap(({ metrics }) => Object.keys(metrics)))];
}

/** `0.985 ± 0.004`, or the figure alone for a deterministic scenario or a single seed. */
export function estimateText(estimate: Estimate | null | undefined): string {
  if (estimate === undefined || estimate === null) return "not measured";
  const { mean, ci95 } = estimate;
  // A rounding error of equal figures is no interval.
  if (ci95 === null || ci95 <= Math.abs(mean) * 1e-9)
    return Number.isInteger(mean) ? String(mean) : mean.toFixed(digitsOf(mean));
  const digits = Math.max(digitsOf(mean), ci95 < 0.1 ? 3 : 1);
  return `${mean.toFixed(digits)} ± ${ci95.toFixed(digits)}`;
}

function digitsOf(mean: number): number {
  const size = Math.abs(mean);
  if (size >= 100) return 1;
  return size >= 10 ? 2 : 3;
}

function conditions({ isDeterministic }: Scenario, reports: readonly RuleReport[]): string {
  const { seeds = [] } = reports[0] ?? {};
  const [first, last] = [seeds[0], seeds.at(-1)];
  const alpha = reports.find((report) => report.alpha !== null)?.alpha;
  const underAlpha = alpha === undefined ? "" : `α ${alpha}, `;
  if (isDeterministic === true) return `${underAlpha}deterministic: one run`;
  if (first === last) return `${underAlpha}seed ${first} alone`;
  return `${underAlpha}seeds ${first} to ${last}; mean ± half the 95 % confidence interval`;
}

function tableOf(reports: readonly RuleReport[], names: readonly string[], view: View): string {
  if (reports.length > names.length) {
    const rows = reports.map(({ rule, metrics }) => [
      rule,
      ...names.map((name) => estimateText(metrics[name])),
    ]);
    return inParts(["rule", ...names], rows, view);
  }
  const rows = names.map((name) => [name, ...reports.map(({ metrics }) => estimateText(metrics[name]))]);
  return inParts(["figure", ...reports.map(({ rule }) => rule)], rows, view);
}

/** A table of figures is never cut: further columns go below. */
function inParts(heads: readonly string[], rows: readonly (readonly string[])[], view: View): string {
  const parts: number[][] = [];
  const widthOf = (at: number) => widest([heads[at] ?? "", ...rows.map((row) => row[at] ?? "")]) + GAP;
  let room = 0;
  for (let at = 1; at < heads.length; at += 1) {
    room -= widthOf(at);
    const part = parts.at(-1);
    if (part !== undefined && room >= 0) part.push(at);
    else {
      parts.push([at]);
      room = (view.columns ?? Number.POSITIVE_INFINITY) + GAP - widthOf(0) - widthOf(at);
    }
  }
  const tables = parts.map((part) => {
    const places = [0, ...part];
    const columns = places.map(
      (at): Column => ({ head: heads[at] ?? "", align: at === 0 ? "left" : "right" }),
    );
    const cells = rows.map((row) => places.map((at) => row[at] ?? ""));
    return renderTable({ colors: view.colors, columns: undefined }, columns, cells);
  });
  return tables.join("\n\n");
}

function widest(texts: readonly string[]): number {
  return texts.reduce((width, { length }) => Math.max(width, length), 0);
}
