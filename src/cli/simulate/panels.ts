// The panels of a picture, as Vega groups. Each has its own rows and axes; colours and legend are the picture's.

import type { Axis, BandScale, Data, GroupMark, LinearScale, LogScale, Mark } from "vega";
import { formatCount } from "../../count-text.ts";
import { brokenAt } from "../format.ts";
import type { Series } from "./series.ts";

const WIDTH = 320;
const WATERFALL_HEIGHT = 300;
const HEIGHT = 150;
/** Height of one rule's row of figures. */
const ROW_HEIGHT = 22;
/** Where titles of axes stand beside names is said, for Vega guesses how wide a text is, by half too much. */
const aboveNames = { titleAngle: 0, titleAlign: "right", titleX: -8, titleY: -6 } as const;
const slantedLabels = { labelAngle: -45, labelAlign: "right", labelBaseline: "middle" } as const;
/** Approximate height of a character in a slanted label. */
const SLANTED_CHARACTER_HEIGHT = 4;
/** More would stand over the width, but be taken for so wide that the legend moves away. */
const SUBTITLE_CHARACTERS = 46;

type Unplaced<Of> = Omit<Of, "name" | "range">;

/** One direction of a panel: its scale, and the axis with its unit. */
interface Dimension {
  readonly scale: Unplaced<LinearScale> | Unplaced<LogScale> | Unplaced<BandScale>;
  readonly axis: Omit<Axis, "scale" | "orient" | "title"> & { readonly title: string };
}

interface Panel {
  readonly title: string;
  readonly subtitle: string;
  readonly height: number;
  readonly x: Dimension;
  readonly y: Dimension;
  readonly data: Data[];
  readonly marks: Mark[];
}

function panel({ title, subtitle, height, x, y, data, marks }: Panel): GroupMark {
  return {
    type: "group",
    title: { text: title, subtitle: brokenAt(subtitle, SUBTITLE_CHARACTERS) },
    // The encoding sets the size of the group; the signals set the length of its ranges and grid lines.
    signals: [
      { name: "width", value: WIDTH },
      { name: "height", value: height },
    ],
    encode: { update: { width: { value: WIDTH }, height: { value: height } } },
    data,
    scales: [
      { ...x.scale, name: "x", range: "width" },
      { ...y.scale, name: "y", range: "height" },
    ],
    axes: [
      { orient: "bottom", scale: "x", tickCount: 6, ...x.axis },
      { orient: "left", scale: "y", tickCount: 6, ...y.axis },
    ],
    marks,
  };
}

const onX = (field: string) => ({ scale: "x", field });
const onY = (field: string) => ({ scale: "y", field });
const userColor = { scale: "color", field: "user" };

function timeAxis({ unit }: Series): Dimension["axis"] {
  return { title: `time, ${unit}` };
}

/** One bar per attempt, by start; the faint line before a bar is the wait. */
export function waterfallPanel(rule: string, series: Series): GroupMark {
  const bars = series.bars.filter((bar) => bar.rule === rule);
  const count = series.countByRule.get(rule) ?? 0;
  const first = bars[0]?.place ?? 0;
  const last = (bars.at(-1)?.place ?? 0) + 1;
  const isPart = bars.length < count;
  const from = bars.reduce((least, { startedAt }) => Math.min(least, startedAt), series.endsAt);
  const to = bars.reduce((most, { endedAt }) => Math.max(most, endedAt), 0);
  const which = isPart
    ? `; tasks ${formatCount(first + 1)} to ${formatCount(last)} of ${formatCount(count)}`
    : "";
  return panel({
    title: `${rule}: when each task ran`,
    subtitle: `bar: a task runs, faint line: it waits${which}`,
    height: WATERFALL_HEIGHT,
    x: {
      scale: { type: "linear", domain: isPart ? [from, to] : [0, series.endsAt], zero: false },
      axis: timeAxis(series),
    },
    y: {
      scale: { type: "linear", domain: [last, first], zero: false },
      axis: { title: "tasks in order of their start", grid: true },
    },
    data: [
      { name: "own", values: bars },
      { name: "waited", values: bars.filter(({ startedAt, arrivedAt }) => startedAt > arrivedAt) },
    ],
    marks: [
      {
        type: "rule",
        clip: true,
        from: { data: "waited" },
        encode: {
          enter: {
            x: onX("arrivedAt"),
            x2: onX("startedAt"),
            y: { scale: "y", signal: "datum.place + 0.5" },
            stroke: userColor,
            strokeOpacity: { value: 0.18 },
          },
        },
      },
      {
        type: "rect",
        from: { data: "own" },
        encode: {
          enter: {
            x: onX("startedAt"),
            x2: onX("endedAt"),
            y: onY("place"),
            y2: { scale: "y", signal: "datum.place + 1" },
            fill: userColor,
          },
        },
      },
    ],
  });
}

/** Each user's share of the service over time. */
export function sharePanel(rule: string, series: Series): GroupMark {
  return panel({
    title: `${rule}: who was served`,
    subtitle: "each user's share of the service over time",
    height: HEIGHT,
    x: { scale: { type: "linear", domain: [0, series.endsAt] }, axis: timeAxis(series) },
    y: {
      scale: { type: "linear", domain: [0, 1] },
      axis: { title: "share of the service", format: "%", tickCount: 5 },
    },
    data: [
      {
        name: "own",
        values: series.shares.filter((row) => row.rule === rule),
        transform: [{ type: "stack", groupby: ["at"], sort: { field: "order" }, field: "share" }],
      },
    ],
    marks: [
      {
        type: "group",
        from: { facet: { name: "ofUser", data: "own", groupby: "user" } },
        marks: [
          {
            type: "area",
            from: { data: "ofUser" },
            encode: {
              enter: {
                x: onX("at"),
                y: onY("y0"),
                y2: onY("y1"),
                fill: userColor,
                interpolate: { value: "step-after" },
              },
            },
          },
        ],
      },
    ],
  });
}

/** One bar per user: the mean wait; the line above marks the longest wait. */
export function waitPanel(rule: string, series: Series): GroupMark {
  const longest = series.waits.reduce((most, row) => Math.max(most, row.longest), 0);
  const longestName = series.users.reduce((most, { length }) => Math.max(most, length), 0);
  return panel({
    title: `${rule}: how long they waited`,
    subtitle: "bar: mean of a user's tasks, line: longest",
    height: HEIGHT,
    x: {
      scale: { type: "band", domain: [...series.users], padding: 0.25 },
      axis: { title: "user", titleY: 14 + longestName * SLANTED_CHARACTER_HEIGHT, ...slantedLabels },
    },
    y: {
      scale: { type: "linear", domain: [0, longest || 1], nice: true },
      axis: { title: `wait, ${series.unit}`, tickCount: 5, grid: true },
    },
    data: [{ name: "own", values: series.waits.filter((row) => row.rule === rule) }],
    marks: [
      {
        type: "rect",
        from: { data: "own" },
        encode: {
          enter: {
            x: onX("user"),
            width: { scale: "x", band: 1 },
            y: onY("mean"),
            y2: { scale: "y", value: 0 },
            fill: userColor,
          },
        },
      },
      {
        type: "rule",
        from: { data: "own" },
        encode: {
          enter: {
            x: onX("user"),
            x2: { ...onX("user"), band: 1 },
            y: onY("longest"),
            stroke: { value: "#333" },
            strokeWidth: { value: 2 },
          },
        },
      },
    ],
  });
}

/** Marks of a figure's panel, with their names in the legend. */
const figureMarks = [
  { name: "waggle (mean)", color: "#e8710a", shape: "circle" },
  { name: "another rule (mean)", color: "#4c78a8", shape: "circle" },
  { name: "95 % confidence interval", color: "#888", shape: "stroke" },
] as const;
const [ours, others, interval] = figureMarks;

export interface FigureRow {
  readonly rule: string;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** The marks that some rows need. */
export function figureMarksOf(rows: readonly FigureRow[]): (typeof figureMarks)[number][] {
  const needs = (mark: (typeof figureMarks)[number]) =>
    rows.some((row) => (mark === interval ? row.low < row.high : mark === markOf(row)));
  return figureMarks.filter(needs);
}

function markOf({ rule }: FigureRow): typeof ours | typeof others {
  return rule === "waggle" ? ours : others;
}

export interface FigurePanel {
  readonly title: string;
  readonly meaning: string;
  /** The quantity on the axis, with its unit. */
  readonly axis: string;
  readonly rules: readonly string[];
  /** Rows of the rules with a measurement. */
  readonly rows: readonly FigureRow[];
}

/** Above this ratio of largest to smallest value, a linear axis shows only the largest. */
const LOG_FROM = 30;

/** One dot per rule, with its interval; a logarithmic axis if the figures lie far apart. */
export function figurePanel({ title, meaning, axis, rules, rows }: FigurePanel): GroupMark {
  const lowest = rows.reduce((least, { low }) => Math.min(least, low), Number.POSITIVE_INFINITY);
  const highest = rows.reduce((most, { high }) => Math.max(most, high), 0);
  const isLog = lowest > 0 && highest / lowest > LOG_FROM;
  const measured = new Set(rows.map((row) => row.rule));
  const inItsRow = { ...onY("rule"), band: 0.5 };
  return panel({
    title,
    subtitle: meaning,
    height: rules.length * ROW_HEIGHT,
    x: {
      scale: isLog
        ? { type: "log", domain: [lowest * 0.8, highest * 1.3] }
        : { type: "linear", domain: [Math.min(0, lowest), highest * 1.12 || 1] },
      axis: { title: isLog ? `${axis} (logarithmic)` : axis, grid: true, tickCount: 5 },
    },
    y: { scale: { type: "band", domain: [...rules] }, axis: { title: "rule", ...aboveNames } },
    data: [
      { name: "own", values: rows.map((row) => ({ ...row, color: markOf(row).color })) },
      {
        name: "absent",
        values: rules.filter((rule) => !measured.has(rule)).map((rule) => ({ rule })),
      },
    ],
    marks: [
      {
        type: "rule",
        from: { data: "own" },
        encode: {
          enter: {
            x: onX("low"),
            x2: onX("high"),
            y: inItsRow,
            stroke: { value: interval.color },
            strokeWidth: { value: 2 },
          },
        },
      },
      {
        type: "symbol",
        from: { data: "own" },
        encode: { enter: { x: onX("mean"), y: inItsRow, size: { value: 60 }, fill: { field: "color" } } },
      },
      {
        type: "text",
        from: { data: "own" },
        encode: {
          enter: {
            x: { ...onX("mean"), offset: 8 },
            y: { ...inItsRow, offset: -7 },
            text: { signal: "format(datum.mean, datum.mean >= 1000 ? ',.0f' : '.3~g')" },
            fontSize: { value: 9 },
            fill: { value: "#444" },
          },
        },
      },
      {
        type: "text",
        from: { data: "absent" },
        encode: {
          enter: {
            x: { value: 8 },
            y: inItsRow,
            text: { value: "not measured" },
            baseline: { value: "middle" },
            fontSize: { value: 9 },
            fill: { value: "#888" },
          },
        },
      },
    ],
  });
}
