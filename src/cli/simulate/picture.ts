// A simulation as a picture (SVG): for scenarios with users a waterfall, the shares over time and the waits, a
// column a rule; for the others their figures, a row a rule. Drawn by Vega, without a browser.
// Not here: what is drawn (series.ts), how a panel is drawn (panels.ts).

import type { Spec } from "vega";
import type { Scenario } from "../../sim/policy/scenario.ts";
import type { RuleReport } from "../../sim/policy/simulate.ts";
import type { Timeline } from "../../sim/policy/timeline.ts";
import { figurePanel, sharePanel, waitPanel, waterfallPanel } from "./panels.ts";
import { figureNames } from "./report-text.ts";
import { seriesOf } from "./series.ts";

/**
 * @param timelines of the rules that have one; without any, the figures are drawn
 * @returns an SVG document
 */
export async function drawPicture(
  scenario: Scenario,
  reports: readonly RuleReport[],
  timelines: ReadonlyMap<string, Timeline>,
): Promise<string> {
  // Loaded when it is needed: no other verb should wait for it.
  const { parse, View } = await import("vega");
  const spec = timelines.size > 0 ? timelineSpec(scenario, timelines) : figureSpec(scenario, reports);
  const view = new View(parse(spec), { renderer: "none" });
  try {
    return rounded(await view.toSVG());
  } finally {
    view.finalize();
  }
}

/** Places to a hundredth of a pixel: nobody sees more, and a picture is a third as large. */
function rounded(svg: string): string {
  return svg.replace(/ (?:d|transform|x2|y2)="[^"]*"/g, (attribute) =>
    attribute.replace(/\d+\.\d{3,}/g, (number) => String(Math.round(Number(number) * 100) / 100)),
  );
}

function timelineSpec(scenario: Scenario, timelines: ReadonlyMap<string, Timeline>): Spec {
  const series = seriesOf(timelines);
  const names = [...timelines.keys()];
  return {
    ...frame(scenario),
    layout: { padding: { row: 44, column: 44 }, columns: names.length, bounds: "full", align: "each" },
    data: [
      { name: "bars", values: series.bars },
      { name: "shares", values: series.shares },
      { name: "waits", values: series.waits },
    ],
    scales: [
      {
        name: "color",
        type: "ordinal",
        domain: [...series.users],
        range: { scheme: series.users.length <= 10 ? "tableau10" : "tableau20" },
      },
    ],
    legends: [{ fill: "color", title: "user", orient: "right", symbolType: "square", rowPadding: 2 }],
    marks: [
      ...names.map((rule) => waterfallPanel(rule, series)),
      ...names.map((rule) => sharePanel(rule, series)),
      ...names.map((rule) => waitPanel(rule, series)),
    ],
  };
}

function figureSpec(scenario: Scenario, reports: readonly RuleReport[]): Spec {
  const names = scenario.charted ?? figureNames(reports);
  const rows = reports.flatMap(({ rules, metrics }) =>
    names.flatMap((name) => {
      const estimate = metrics[name];
      if (estimate === undefined || estimate === null) return [];
      const { mean, ci95 } = estimate;
      return [{ rules, name, mean, low: mean - (ci95 ?? 0), high: mean + (ci95 ?? 0) }];
    }),
  );
  return {
    ...frame(scenario),
    layout: { padding: 44, columns: Math.min(3, names.length), bounds: "full", align: "each" },
    data: [{ name: "figures", values: rows }],
    marks: names.map((name) =>
      figurePanel({
        name,
        meaning: scenario.metrics[name] ?? "",
        rules: reports.map(({ rules }) => rules),
        rows: rows.filter((row) => row.name === name),
      }),
    ),
  };
}

function frame({ name, summary }: Scenario): Spec {
  return {
    $schema: "https://vega.github.io/schema/vega/v6.json",
    background: "white",
    padding: 16,
    title: { text: name, subtitle: summary, anchor: "start", fontSize: 16, subtitleFontSize: 12, offset: 20 },
    config: {
      axis: { labelFontSize: 10, titleFontSize: 11, titleFontWeight: "normal", gridColor: "#e4e4e4" },
      title: { fontSize: 12, anchor: "start" },
      legend: { labelFontSize: 11, titleFontSize: 11 },
    },
  };
}
