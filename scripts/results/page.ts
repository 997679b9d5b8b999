// docs/results.md as text, from the reports of all runs. Not here: notes by hand (notes.ts).

import { estimateText, figureNames } from "../../src/cli/simulate/report-text.ts";
import { locoPublished, sustainablePublished } from "../../src/sim/policy/published.ts";
import type { Requirement } from "../../src/sim/policy/requirements.ts";
import type { Scenario } from "../../src/sim/policy/scenario.ts";
import { scenarios } from "../../src/sim/policy/scenarios.ts";
import type { RuleReport } from "../../src/sim/policy/simulate.ts";
import type { Estimate } from "../../src/sim/policy/statistics.ts";
import { notes } from "./notes.ts";

export interface Checked {
  readonly requirement: Requirement;
  readonly figure: number;
  readonly passed: boolean;
}

export interface Results {
  readonly reports: readonly RuleReport[];
  readonly checked: readonly Checked[];
  readonly seeds: number;
}

const OURS = "waggle";
const ALPHA = 0.25;

export function resultsPage(results: Results): string {
  const ran = scenarios.filter(({ name }) => results.reports.some(({ scenario }) => scenario === name));
  return `${[
    "# Results",
    "This page shows how Waggle's rules, published rules and rivals serve the same load, and where others do better than Waggle.",
    `Written by \`npm run simulate:all\` (${results.seeds} seeds, 0 to ${results.seeds - 1}); do not edit. Each figure is a mean over the seeds ± half ` +
      "its 95 % confidence interval; without ± the scenario is deterministic, or all seeds agree. [Simulating](simulate.md) explains " +
      "the runs, the figures and our choices. α is 0.25 unless stated.",
    "## Claims",
    claims(results.checked),
    "## Where others are better",
    losses(ran, results.reports),
    "## LOCO's published table",
    locoTable(results.reports),
    ...ran.map((scenario) => scenarioSection(scenario, results.reports)),
  ].join("\n\n")}\n`;
}

function claims(checked: readonly Checked[]): string {
  const rows = checked.map(({ requirement, figure, passed }) => [
    linkTo(requirement.runs[0]?.scenario ?? ""),
    requirement.sentence,
    boundText(requirement),
    shortFigure(figure),
    passed ? "holds" : "**does not hold**",
  ]);
  return table(["scenario", "claim", "bound", "figure", ""], rows);
}

function linkTo(scenario: string): string {
  return `[${scenario}](#${scenario})`;
}

function boundText({ atLeast, atMost }: Requirement): string {
  const [low, high] = [atLeast, atMost].map((bound) =>
    bound === undefined ? undefined : shortFigure(bound),
  );
  if (low !== undefined && high !== undefined) return low === high ? `= ${low}` : `${low} … ${high}`;
  return low === undefined ? `≤ ${high}` : `≥ ${low}`;
}

function shortFigure(figure: number): string {
  return String(Number(figure.toPrecision(4)));
}

/** All figures in which a rule beats the production planner by more than both intervals together. */
function losses(ran: readonly Scenario[], reports: readonly RuleReport[]): string {
  const rows = ran.flatMap(({ name, better }) => {
    const ofScenario = reports.filter(
      ({ scenario, alpha }) => scenario === name && (alpha ?? ALPHA) === ALPHA,
    );
    const ours = ofScenario.find(({ rule }) => rule === OURS)?.metrics ?? {};
    return Object.entries(better).flatMap(([metric, way]) => {
      const own = ours[metric];
      if (own === undefined || own === null) return [];
      const winners = ofScenario.filter(({ metrics }) => isBetter(metrics[metric], own, way));
      if (winners.length === 0) return [];
      const said = winners.map(({ rule, metrics }) => `${rule} ${estimateText(metrics[metric])}`);
      return [[linkTo(name), metric, estimateText(own), said.join(", ")]];
    });
  });
  return `${notes.losses}\n\n${table(["scenario", "figure", "ours", "better"], rows)}`;
}

function isBetter(theirs: Estimate | null | undefined, ours: Estimate, way: "lower" | "higher"): boolean {
  if (theirs === undefined || theirs === null || theirs.ci95 === null || ours.ci95 === null) return false;
  const lead = way === "lower" ? ours.mean - theirs.mean : theirs.mean - ours.mean;
  return lead > theirs.ci95 + ours.ci95 + 1e-9;
}

function locoTable(reports: readonly RuleReport[]): string {
  const find = (scenario: string, alpha: number) =>
    reports.find((one) => one.scenario === scenario && one.rule === "loco" && one.alpha === alpha)?.metrics ??
    {};
  const rows = locoPublished.map((published) => {
    const { alpha } = published;
    const [overload, spike] = [find("loco-overload", alpha), find("loco-spike", alpha)];
    return [
      alpha.toFixed(2),
      `${published.jain} ± ${published.jainCi}`,
      estimateText(overload["jain"]),
      `${published.neverServed.toFixed(2)} ± ${published.neverServedCi.toFixed(2)}`,
      estimateText(overload["neverServed"]),
      `${published.spike} ± ${published.spikeCi}`,
      estimateText(spike["spike"]),
      estimateText(find("loco-sustainable", alpha)["jain"]),
      estimateText(find("loco-sustainable", alpha)["waitMean"]),
    ];
  });
  const { jain, jainCi, waitMean } = sustainablePublished;
  return [
    `${notes.loco} For the sustainable load ${jain} ± ${jainCi}, no unserved client, and waits of about ${waitMean} ticks, are published for every α.`,
    table(
      [
        "α",
        "Jain, published",
        "here",
        "never served, published",
        "here",
        "spike, published",
        "here",
        "sustainable: Jain",
        "wait",
      ],
      rows,
    ),
  ].join("\n\n");
}

function scenarioSection(
  { name, summary, rules, metrics }: Scenario,
  reports: readonly RuleReport[],
): string {
  const own = reports.filter(({ scenario, alpha }) => scenario === name && (alpha ?? ALPHA) === ALPHA);
  const names = figureNames(own);
  const rows = own.map((report) => [
    report.rule,
    ...names.map((metric) => estimateText(report.metrics[metric])),
  ]);
  const note = notes[name];
  return [
    `## ${name}`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.${note === undefined ? "" : ` ${note}`}`,
    table(["rule", ...names], rows),
    names.map((metric) => `- \`${metric}\`: ${metrics[metric] ?? ""}`).join("\n"),
    own.map((report) => `- \`${report.rule}\`: ${rules[report.rule] ?? ""}`).join("\n"),
    `![${name}](results/${name}.svg)`,
  ].join("\n\n");
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heads), `|${heads.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}
