// A chart over time (uPlot). Charts of a group share the cursor and the zoom, which a drag selects.

import { type Signal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useDashboard } from "../context.ts";
import { clockTime } from "../format.ts";
import { html, type View } from "./html.ts";
import { useWidth } from "./width.ts";

export interface Line {
  readonly label: string;
  /** 1 to 8: the colour of the theme. */
  readonly colour: number;
  readonly fill?: boolean;
  readonly dashed?: boolean;
}

/** The visible stretch, in seconds since the epoch; undefined: everything. */
export type Zoom = { readonly min: number; readonly max: number } | undefined;

export interface LineChartProps {
  readonly title: string;
  readonly note?: string;
  readonly lines: readonly Line[];
  /** First the times in seconds since the epoch, then a column for each line. Null: unknown. */
  readonly columns: readonly (readonly (number | null)[])[];
  readonly text: (value: number) => string;
  readonly zoom?: Signal<Zoom>;
  readonly group?: string;
  /** Top of the axis at least. */
  readonly top?: number;
  readonly height?: number;
}

const HEIGHT = 168;
const STACKED_LEGEND = 26;

export function LineChart(props: LineChartProps): View {
  const { title, note, height = HEIGHT } = props;
  const { theme } = useDashboard();
  const { box, width } = useWidth<HTMLDivElement>();
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;

  const shape = props.lines.map(({ label }) => label).join("|");
  useSignalEffect(() => {
    const { value: chosen } = theme.theme;
    const into = box.current;
    if (width.value === 0 || into === null || chosen === undefined) return;
    plot.current?.destroy();
    plot.current = draw(latest.current, { into, width: width.value, height });
    show(plot.current, latest.current);
  });
  useSignalEffect(() => {
    const stretch = props.zoom?.value;
    if (plot.current !== undefined) zoomTo(plot.current, stretch, latest.current.columns);
  });
  useLayoutEffect(() => {
    if (plot.current !== undefined) show(plot.current, props);
  }, [...props.columns]); // most drawings of the page leave the columns as they are
  useLayoutEffect(() => () => plot.current?.destroy(), []);

  return html`<figure class="card chart" data-chart=${title} data-lines=${shape}>
    <figcaption class="chart-head"><h3>${title}</h3>${note !== undefined && html`<p>${note}</p>`}</figcaption>
    <div class="plot" ref=${box} style=${{ minHeight: `${height + STACKED_LEGEND}px` }}></div>
  </figure>`;
}

function show(plot: uPlot, { columns, zoom }: LineChartProps): void {
  const stretch = zoom?.peek();
  plot.setData(columns as uPlot.AlignedData, stretch === undefined);
  if (stretch !== undefined) zoomTo(plot, stretch, columns);
  // Without the cursor in a chart, the legend has the newest values. The chart draws in a microtask, and empties it.
  queueMicrotask(() => {
    const last = (plot.data[0]?.length ?? 0) - 1;
    if ((plot.cursor.left ?? -1) < 0 && last >= 0) plot.setLegend({ idx: last }, false);
  });
}

function zoomTo(plot: uPlot, stretch: Zoom, [times = []]: LineChartProps["columns"]): void {
  const min = stretch?.min ?? times[0];
  const max = stretch?.max ?? times.at(-1);
  if (typeof min === "number" && typeof max === "number" && max > min) plot.setScale("x", { min, max });
}

function draw(
  { lines, columns, text, zoom, group, top = 0 }: LineChartProps,
  { into, width, height }: { readonly into: HTMLElement; readonly width: number; readonly height: number },
): uPlot {
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--faint"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const options: uPlot.Options = {
    width,
    height,
    cursor: {
      ...(group === undefined ? {} : { sync: { key: group } }),
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
    },
    scales: { y: { range: (_, __, max) => [0, Math.max(top, (max ?? 0) * 1.08, 1e-9)] } },
    axes: [
      { ...axis, size: 28, space: 72, values: (_, splits) => splits.map(axisTime) },
      { ...axis, size: 52, space: 34, values: (_, splits) => splits.map(text) },
    ],
    series: [
      { label: "", value: (_, value) => (value === null ? "" : axisTime(value)) },
      ...lines.map(({ label, colour: at, fill, dashed }): uPlot.Series => {
        const stroke = colour(`--series-${at}`);
        return {
          label,
          stroke,
          width: 1.6,
          points: { show: false },
          ...(fill === true ? { fill: `${stroke}26` } : {}),
          ...(dashed === true ? { dash: [4, 4] } : {}),
          value: (_, value) => (value === null || value === undefined ? "–" : text(value)),
        };
      }),
    ],
    hooks: {
      setSelect: [
        (chart) => {
          if (zoom === undefined || chart.select.width < 4) return;
          const min = chart.posToVal(chart.select.left, "x");
          const max = chart.posToVal(chart.select.left + chart.select.width, "x");
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom.value = { min, max };
        },
      ],
      ready: [
        (chart) => {
          chart.over.addEventListener("dblclick", () => {
            if (zoom !== undefined) zoom.value = undefined;
          });
        },
      ],
    },
  };
  return new uPlot(options, columns as uPlot.AlignedData, into);
}

function axisTime(seconds: number): string {
  return clockTime(seconds * 1_000);
}
