// The measured parts of docs/performance.md, and its charts. The page's own words stand around the parts.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Budgets, budgetConditions, budgetTable } from "./budget.ts";
import { growthCases, mainCases } from "./cases.ts";
import { type Bar, barChart } from "./charts.ts";
import { Figures, type Run, roles } from "./record.ts";
import type { Spread } from "./statistics.ts";
import { mainSystems, titleOf } from "./systems.ts";
import {
  asMarkdown,
  conditionsOf,
  numberText,
  requiredTableOf,
  spreadText,
  tablesOfCases,
} from "./tables.ts";

/** Marked parts of the page, each with the command that writes the part. */
const marks = {
  measured: "npm run bench -- --report",
  growth: "npm run bench -- --cases growth --report",
  budget: "npm run bench:profile -- --report",
} as const;
const pagePath = "docs/performance.md";
const budgetPath = "docs/results/budget.json";

/** A run of cases of growth alone has a part of the page, and a file, of its own.
 *  @param root of the repository. @returns the written paths, from the root */
export function writeReport(run: Run, root: string): readonly string[] {
  const charts = chartsOf(run);
  const [name, part] = isOfGrowth(run)
    ? (["growth", growthPart(run)] as const)
    : (["measured", measuredPart(run, [...charts.keys()])] as const);
  const file = name === "growth" ? "performance-growth" : "performance";
  return writeAll(root, [
    [pagePath, withPart(readFileSync(join(root, pagePath), "utf8"), name, part)],
    [`docs/results/${file}.json`, `${JSON.stringify(run, undefined, 1)}\n`],
    ...[...charts].map(([chart, svg]) => [`docs/results/${chart}.svg`, svg] as const),
  ]);
}

/** @param root of the repository. @returns the written paths, from the root */
export function writeBudgets(budgets: Budgets, root: string): readonly string[] {
  const part = [budgetConditions(budgets), asMarkdown(budgetTable(budgets))].join("\n\n");
  return writeAll(root, [
    [pagePath, withPart(readFileSync(join(root, pagePath), "utf8"), "budget", part)],
    [budgetPath, `${JSON.stringify(budgets, undefined, 1)}\n`],
  ]);
}

/** Undefined if none were written yet. */
export function storedBudgets(root: string): Budgets | undefined {
  const path = join(root, budgetPath);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Budgets) : undefined;
}

function writeAll(
  root: string,
  files: readonly (readonly [path: string, text: string])[],
): readonly string[] {
  mkdirSync(join(root, "docs", "results"), { recursive: true });
  for (const [path, text] of files) writeFileSync(join(root, path), text);
  return files.map(([path]) => path);
}

/** @throws Error if the page lacks the two marks of the part */
export function withPart(page: string, name: keyof typeof marks, part: string): string {
  const begin = `<!-- ${name}: ${marks[name]} writes from here -->`;
  const end = `<!-- ${name}: to here -->`;
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${pagePath} lacks the marks ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${part}\n\n${page.slice(to)}`;
}

/** By file name, without the cases that the run lacks. */
export function chartsOf(run: Run): ReadonlyMap<string, string> {
  const figures = new Figures(run);
  const bars = (name: string, read: (system: string) => Omit<Bar, "label" | "isOurs"> | undefined): Bar[] =>
    figures.systemsIn(name).flatMap((system) => {
      const bar = read(system);
      return bar === undefined ? [] : [{ label: titleOf(system), isOurs: system === "waggle", ...bar }];
    });
  const spread = (found: Spread | undefined) =>
    found && { value: found.median, spread: [found.least, found.most] as const };
  const parts = (name: string, system: string) => {
    const all = roles.flatMap((role) => {
      const us = figures.spreadOfRole(name, system, role)?.median;
      return us === undefined ? [] : [{ name: role, value: us }];
    });
    return { value: all.reduce((sum, { value }) => sum + value, 0), parts: all };
  };
  const charts = [
    {
      name: "performance-throughput",
      title: "Throughput with 1,024 tasks in flight",
      unit: "tasks per second, median of the rounds; lines: least and most",
      bars: bars("c1024", (system) => spread(figures.spread("c1024", system, "ratePerSecond"))),
      digits: 0,
    },
    {
      name: "performance-cpu",
      title: "CPU time of a task, 1,024 tasks in flight",
      unit: "µs of all processes, by role",
      bars: bars("c1024", (system) => parts("c1024", system)),
      digits: 0,
    },
    {
      name: "performance-latency",
      title: "One task at a time",
      unit: "ms from submission to result, p50; lines: least and most of the rounds",
      bars: bars("c1", (system) => spread(figures.spread("c1", system, "p50"))),
      digits: 2,
    },
    {
      name: "performance-half-load",
      title: "Half of one's own maximum",
      unit: "ms from the instant a task was due to its result, p99; lines: least and most of the rounds",
      bars: bars("open", (system) => spread(figures.spread("open", system, "p99"))),
      digits: 1,
    },
    {
      name: "performance-light-load",
      title: "CPU time of a task at 2,000 tasks per second",
      unit: "µs of all processes, by role",
      bars: bars("open2k", (system) => parts("open2k", system)),
      digits: 0,
    },
  ];
  return new Map(
    charts
      .filter((chart) => chart.bars.length > 0)
      .map(({ name, digits, ...chart }) => [
        name,
        barChart({ ...chart, format: (value) => numberText(value, digits) }),
      ]),
  );
}

export function isOfGrowth(run: Run): boolean {
  const cases = new Figures(run).cases();
  return cases.length > 0 && cases.every((name) => growthCases.some((each) => each === name));
}

/** The table with the requirements comes first: it has the answer to "how fast". */
function growthPart(run: Run): string {
  return [
    "### Conditions of growth",
    ...conditionsIn(run),
    ...requiredIn(run, "Required of growth"),
    ...tablesIn(run),
  ].join("\n\n");
}

function measuredPart(run: Run, charts: readonly string[]): string {
  return [
    "### Conditions",
    ...conditionsIn(run),
    ...charts.map((name) => `![${name}](results/${name}.svg)`),
    ...requiredIn(run, "Required"),
    "### Losses",
    lossesOf(run),
    ...tablesIn(run),
  ].join("\n\n");
}

function conditionsIn(run: Run): readonly string[] {
  const leftOut = run.leftOut.map(({ system, reason }) => `- ${titleOf(system)} was left out: ${reason}`);
  return [conditionsOf(run), ...(leftOut.length > 0 ? [leftOut.join("\n")] : [])];
}

function requiredIn(run: Run, heading: string): readonly string[] {
  const table = requiredTableOf(run);
  return table === undefined ? [] : [`### ${heading}`, asMarkdown(table)];
}

function tablesIn(run: Run): readonly string[] {
  return tablesOfCases(run).flatMap((table) => [`### ${headingOf(table.title)}`, asMarkdown(table)]);
}

/** The compared figures, with the cases in which they count. More is better for tasks per second alone. */
const measures = [
  { what: "tasks/s", field: "ratePerSecond", isMoreBetter: true, cases: ["c1024", "c64", "c1", "burst"] },
  { what: "p99", field: "p99", isMoreBetter: false, cases: ["c1", "open", "open2k"] },
  { what: "CPU time", field: "us", isMoreBetter: false, cases: ["c1024", "c64", "c1", "open2k"] },
] as const;

/** The systems that did better than Waggle in the same rounds. */
export function lossesOf(run: Run): string {
  const figures = new Figures(run);
  const losses = measures.flatMap(({ what, field, isMoreBetter, cases }) =>
    cases.flatMap((name) =>
      figures.systemsIn(name).flatMap((system) => {
        if (system.startsWith("waggle") || system === "append") return []; // an append is a step of a task
        const ratio = figures.ratio(name, "waggle", system, field);
        if (ratio === undefined || (isMoreBetter ? ratio.median >= 1 : ratio.median <= 1)) return [];
        return [`| ${what} | ${name} | ${titleOf(system)} | ${spreadText(ratio, 2)} |`];
      }),
    ),
  );
  if (losses.length === 0) return "In no measured case did a measured system do better than Waggle.";
  return [
    "The systems of the table did more tasks per second than Waggle, or had a lower p99 or CPU time per task, in the same rounds.",
    "",
    "| measure | case | system | Waggle ÷ system |",
    "|---|---|---|--:|",
    ...losses,
  ].join("\n");
}

/** What keeps a run from replacing a part of the page, as the end of a sentence on the run; undefined if it may. */
export function unfitForPage(run: Run): string | undefined {
  if (run.figures.every(({ error }) => error !== undefined)) return "measured nothing";
  if (run.quick) return "has short windows";
  if (isOfGrowth(run)) return undefined;
  const measured = new Figures(run);
  const lacking = [
    ...mainCases.filter((name) => measured.of(name, "waggle").length === 0),
    ...mainSystems.filter((system) => measured.of("c1", system).length === 0),
  ];
  return lacking.length > 0 ? `lacks ${lacking.join(", ")}` : undefined;
}

function headingOf(title: string): string {
  return `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
}
