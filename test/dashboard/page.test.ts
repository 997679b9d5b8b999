// The parts of the dashboard's page that need no browser: texts of figures, and the layout of state charts.

import { describe, expect, it } from "vitest";
import { bytes, count, duration, figure, percent, window } from "../../src/dashboard/page/format.ts";
import { layoutOf } from "../../src/dashboard/page/ui/chart-layout.ts";
import { chartViews } from "../../src/dashboard/views/charts.ts";
import { aStatus } from "../support/statuses.ts";

describe("figures of the page", () => {
  it.each([
    [duration(0), "0 ms"],
    [duration(-5), "0 ms"],
    [duration(999.4), "999 ms"],
    [duration(3_440), "3.4 s"],
    [duration(59_999), "59 s"],
    [duration(125_000), "2m 05s"],
    [duration(12_000_000), "3h 20m"],
    [duration(187_200_000), "2d 4h"],
    [window(86_400_000), "1d"],
    [window(5_400_000), "90m"],
    [count(9_999), "9,999"],
    [count(12_400), "12.4k"],
    [count(3_100_000), "3.1M"],
    [figure(0.3141), "0.31"],
    [figure(42.55), "42.5"],
    [percent(0.004), "0.4 %"],
    [percent(1), "100 %"],
    [bytes(0), "0 B"],
    [bytes(1_536), "1.5 KiB"],
    [bytes(12_345_678), "11.8 MiB"],
  ])("%s", (text, expected) => {
    expect(text).toBe(expected);
  });
});

describe("the layout of a state chart", () => {
  const charts = chartViews(aStatus({ tasks: { queued: 2, "dead-lettered": 1 } }));

  it.each(charts.map((chart) => [chart.id, chart] as const))(
    "places every state of %s in the drawing",
    (_, chart) => {
      const { states, edges, outer, width, height } = layoutOf(chart);
      expect(states.map(({ name }) => name)).toEqual(chart.states.map(({ name }) => name));
      for (const state of states) {
        expect(state.x - state.width / 2, state.name).toBeGreaterThanOrEqual(0);
        expect(state.x + state.width / 2, state.name).toBeLessThanOrEqual(width);
        expect(state.y + state.height / 2, state.name).toBeLessThanOrEqual(height);
      }
      for (const { x, y, path } of edges) {
        expect(Number.isFinite(x) && Number.isFinite(y)).toBe(true);
        expect(path).not.toContain("NaN");
      }
      expect(edges.length + outer.length).toBeGreaterThan(0);
    },
  );

  it("tells every signal, in the drawing or below", () => {
    for (const chart of charts) {
      const { edges, outer } = layoutOf(chart);
      const labels = [...edges.flatMap(({ label }) => label), ...outer].join(" ");
      for (const { event } of chart.edges) {
        const words = event.toLowerCase().replaceAll("_", " ");
        expect(labels).toContain(words.startsWith(`${chart.id} `) ? words.slice(chart.id.length + 1) : words);
      }
    }
  });
});
