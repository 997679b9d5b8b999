// A simulation as a picture (SVG). Scenarios with users: a waterfall, shares over time, and waits, with one column
// per rule, or one row per rule if there are many. Scenarios without users: figures, with one row per rule. Drawn by
// Vega, without a browser. Not here: the data (series.ts), the panels (panels.ts).

import type { Spec } from "vega";
import { MissingPackageError } from "../../errors.ts";
import type { Scenario } from "../../sim/policy/scenario.ts";
import type { RuleReport } from "../../sim/policy/simulate.ts";
import type { Timeline } from "../../sim/policy/timeline.ts";
import {
  type FigureRow,
  figureMarksOf,
  figurePanel,
  sharePanel,
  waitPanel,
  waterfallPanel,
} from "./panels.ts";
import { seriesOf } from "./series.ts";

/** @param timelines one per rule that has a timeline; without timelines the figures are drawn @returns an SVG
 *  document */
export async function drawPicture(
  scenario: Scenario,
  reports: readonly RuleReport[],
  timelines: ReadonlyMap<string, Timeline>,
): Promise<string> {
  if (timelines.size === 0) return await drawn(figureSpec(scenario, reports));
  const seedText = ({ first, last }: SeedRange) => `seed ${first} of ${first}–${last}`;
  const { name, summary } = scenario;
  return await drawTimelines(
    { title: name, lines: [summary, conditions(scenario, reports, seedText)] },
    timelines,
  );
}

/** The heading of a picture. */
export interface Heading {
  readonly title: string;
  readonly lines: readonly string[];
}

/** Waterfall, shares and waits of each timeline, side by side. @returns an SVG document
 *  @throws MissingPackageError if Vega is not installed */
export async function drawTimelines(
  heading: Heading,
  timelines: ReadonlyMap<string, Timeline>,
): Promise<string> {
  return await drawn(timelineSpec(heading, timelines));
}

async function drawn(spec: Spec): Promise<string> {
  const { parse, View } = await loadVega();
  const view = new View(parse(spec), { renderer: "none" });
  try {
    return rounded(await view.toSVG());
  } finally {
    view.finalize();
  }
}

/** Loaded only for a picture. Vega is an optional package: with its dependencies it is larger than all required
 *  packages.
 *  @param flag that asks for the picture
 *  @throws MissingPackageError if Vega is not installed */
export async function loadVega(flag = "svg"): Promise<typeof import("vega")> {
  try {
    return await import("vega");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new MissingPackageError(
      "pictures need the package vega, which is not installed: run `npm install vega` beside waggledance " +
        "(`npm install -g vega` for a global installation), or leave out " +
        `--${flag}`,
      { field: flag, cause },
    );
  }
}

/** Places to a hundredth of a pixel: nobody sees more, and a picture is a third as large. */
function rounded(svg: string): string {
  return svg.replace(/ (?:d|transform|x2|y2)="[^"]*"/g, (attribute) =>
    attribute.replace(/\d+\.\d{3,}/g, (number) => String(Math.round(Number(number) * 100) / 100)),
  );
}

function timelineSpec(heading: Heading, timelines: ReadonlyMap<string, Timeline>): Spec {
  const series = seriesOf(timelines);
  const names = [...timelines.keys()];
  const panels = [waterfallPanel, sharePanel, waitPanel];
  const isRowARule = names.length > RULES_ABREAST;
  return {
    ...frame(heading),
    layout: { ...layout, columns: isRowARule ? panels.length : names.length },
    scales: [
      {
        name: "color",
        type: "ordinal",
        domain: [...series.users],
        range: { scheme: series.users.length <= 10 ? "tableau10" : "tableau20" },
      },
    ],
    legends: [{ fill: "color", title: "user", symbolType: "square", ...besides }],
    marks: isRowARule
      ? names.flatMap((rule) => panels.map((panel) => panel(rule, series)))
      : panels.flatMap((panel) => names.map((rule) => panel(rule, series))),
  };
}

function figureSpec(scenario: Scenario, reports: readonly RuleReport[]): Spec {
  const charted = Object.entries(scenario.charted ?? {}).map(([name, said]) => ({
    ...said,
    meaning: `${name}: ${scenario.metrics[name]}`,
    rules: reports.map(({ rule }) => rule),
    rows: reports.flatMap((report) => figureRow(report, name)),
  }));
  const shown = figureMarksOf(charted.flatMap(({ rows }) => rows));
  const names = shown.map(({ name }) => name);
  const seedText = ({ first, last, count }: SeedRange) =>
    `mean over ${count} seeds (${first}–${last}), 95 % confidence interval`;
  return {
    ...frame({ title: scenario.name, lines: [scenario.summary, conditions(scenario, reports, seedText)] }),
    layout: { ...layout, columns: Math.min(3, charted.length) },
    scales: [
      { name: "color", type: "ordinal", domain: names, range: shown.map(({ color }) => color) },
      { name: "shape", type: "ordinal", domain: names, range: shown.map(({ shape }) => shape) },
    ],
    legends: [{ fill: "color", stroke: "color", shape: "shape", ...besides }],
    marks: charted.map(figurePanel),
  };
}

function figureRow({ rule, metrics }: RuleReport, name: string): FigureRow[] {
  const estimate = metrics[name];
  if (estimate === undefined || estimate === null) return [];
  const { mean, ci95 } = estimate;
  return [{ rule, mean, low: mean - (ci95 ?? 0), high: mean + (ci95 ?? 0) }];
}

/** More columns are wider than a screen: then the rules are rows. */
const RULES_ABREAST = 4;

/** Distance between the panels. Vega overestimates the width of texts by half, so the layout leaves fixed room for
 *  axes and the names of rules. */
const layout = { padding: { row: 100, column: 120 }, bounds: "flush", align: "each" } as const;

const besides = { orient: "right", rowPadding: 2 } as const;

interface SeedRange {
  readonly first: number;
  readonly last: number;
  readonly count: number;
}

/** Parameters of the runs, so that a user can repeat them. @param seedText for several seeds */
function conditions(
  { isDeterministic }: Scenario,
  reports: readonly RuleReport[],
  seedText: (range: SeedRange) => string,
): string {
  const { seeds = [] } = reports[0] ?? {};
  const [first = 0, last = first] = [seeds[0], seeds.at(-1)];
  const several = first === last ? `seed ${first} alone` : seedText({ first, last, count: seeds.length });
  const readers = reports.filter(({ alpha }) => alpha !== null);
  const [reader] = readers;
  const alpha =
    reader === undefined ? "" : `; α ${reader.alpha} for ${readers.map(({ rule }) => rule).join(", ")}`;
  return `${isDeterministic === true ? "deterministic: every seed gives the same" : several}${alpha}`;
}

function frame({ title, lines }: Heading): Spec {
  return {
    $schema: "https://vega.github.io/schema/vega/v6.json",
    background: "white",
    padding: 16,
    title: {
      text: title,
      subtitle: [...lines],
      anchor: "start",
      fontSize: 16,
      subtitleFontSize: 12,
      offset: 20,
      frame: "bounds",
    },
    config: {
      axis: { labelFontSize: 10, titleFontSize: 11, titleFontWeight: "normal", gridColor: "#e4e4e4" },
      title: { fontSize: 12, subtitleFontSize: 10, anchor: "start", frame: "group", offset: 8 },
      legend: { labelFontSize: 11, labelLimit: 0, titleFontSize: 11 },
    },
  };
}
