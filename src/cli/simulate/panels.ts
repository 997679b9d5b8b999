// The panels of a picture, as Vega groups. Each has its own axes; colours and legend are the picture's.

import type { GroupMark } from "vega";
import type { Series } from "./series.ts";

const WIDTH = 320;
const WATERFALL_HEIGHT = 300;
const HEIGHT = 150;
/** Of one rule among figures. */
const ROW_HEIGHT = 22;

/** One bar an attempt, in the order of their beginning; the thin line before it is its wait. */
export function waterfallPanel(rule: string, series: Series): GroupMark {
  const bars = series.bars.filter((bar) => bar.rule === rule);
  const first = bars[0]?.place ?? 0;
  const last = (bars.at(-1)?.place ?? 0) + 1;
  const isPart = bars.length < (series.countByRule.get(rule) ?? 0);
  const from = bars.reduce((least, { startedAt }) => Math.min(least, startedAt), series.endsAt);
  const to = bars.reduce((most, { endedAt }) => Math.max(most, endedAt), 0);
  return {
    type: "group",
    title: { text: `${rule}: one bar a task${isPart ? `, ${first + 1} to ${last}` : ""}` },
    encode: { update: { width: { value: WIDTH }, height: { value: WATERFALL_HEIGHT } } },
    data: [
      { name: "own", source: "bars", transform: [{ type: "filter", expr: isOf(rule) }] },
      {
        name: "waited",
        source: "own",
        transform: [{ type: "filter", expr: "datum.startedAt > datum.arrivedAt" }],
      },
    ],
    scales: [
      {
        name: "x",
        type: "linear",
        domain: isPart ? [from, to] : [0, series.endsAt],
        range: [0, WIDTH],
        zero: false,
      },
      { name: "y", type: "linear", domain: [last, first], range: [WATERFALL_HEIGHT, 0], zero: false },
    ],
    axes: [
      { orient: "bottom", scale: "x", title: `time, ${series.unit}`, tickCount: 6 },
      { orient: "left", scale: "y", title: "tasks in order of their start", tickCount: 6, grid: true },
    ],
    marks: [
      {
        type: "rule",
        clip: true,
        from: { data: "waited" },
        encode: {
          enter: {
            x: { scale: "x", field: "arrivedAt" },
            x2: { scale: "x", field: "startedAt" },
            y: { scale: "y", signal: "datum.place + 0.5" },
            stroke: { scale: "color", field: "user" },
            strokeOpacity: { value: 0.18 },
          },
        },
      },
      {
        type: "rect",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "startedAt" },
            x2: { scale: "x", field: "endedAt" },
            y: { scale: "y", field: "place" },
            y2: { scale: "y", signal: "datum.place + 1" },
            fill: { scale: "color", field: "user" },
          },
        },
      },
    ],
  };
}

/** Whose the service was, by time, each user's part of the whole. */
export function sharePanel(rule: string, series: Series): GroupMark {
  return {
    type: "group",
    title: { text: `${rule}: share of the service over time` },
    encode: { update: { width: { value: WIDTH }, height: { value: HEIGHT } } },
    data: [
      {
        name: "own",
        source: "shares",
        transform: [
          { type: "filter", expr: isOf(rule) },
          { type: "stack", groupby: ["at"], sort: { field: "order" }, field: "share" },
        ],
      },
    ],
    scales: [
      { name: "x", type: "linear", domain: [0, series.endsAt], range: [0, WIDTH] },
      { name: "y", type: "linear", domain: [0, 1], range: [HEIGHT, 0] },
    ],
    axes: [
      { orient: "bottom", scale: "x", title: `time, ${series.unit}`, tickCount: 6 },
      { orient: "left", scale: "y", title: "share", format: "%", tickCount: 5 },
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
                x: { scale: "x", field: "at" },
                y: { scale: "y", field: "y0" },
                y2: { scale: "y", field: "y1" },
                fill: { scale: "color", field: "user" },
                interpolate: { value: "step" },
              },
            },
          },
        ],
      },
    ],
  };
}

/** A bar a user: the mean wait; the tick above it is the longest. */
export function waitPanel(rule: string, series: Series): GroupMark {
  const longest = series.waits.reduce((most, row) => Math.max(most, row.longest), 0);
  return {
    type: "group",
    title: { text: `${rule}: waits (bar: mean, tick: longest)` },
    encode: { update: { width: { value: WIDTH }, height: { value: HEIGHT } } },
    data: [{ name: "own", source: "waits", transform: [{ type: "filter", expr: isOf(rule) }] }],
    scales: [
      { name: "x", type: "band", domain: [...series.users], range: [0, WIDTH], padding: 0.25 },
      { name: "y", type: "linear", domain: [0, longest || 1], range: [HEIGHT, 0], nice: true },
    ],
    axes: [
      { orient: "bottom", scale: "x", labelAngle: -45, labelAlign: "right", labelBaseline: "middle" },
      { orient: "left", scale: "y", title: `wait, ${series.unit}`, tickCount: 5, grid: true },
    ],
    marks: [
      {
        type: "rect",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "user" },
            width: { scale: "x", band: 1 },
            y: { scale: "y", field: "mean" },
            y2: { scale: "y", value: 0 },
            fill: { scale: "color", field: "user" },
          },
        },
      },
      {
        type: "rule",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "user" },
            x2: { scale: "x", field: "user", band: 1 },
            y: { scale: "y", field: "longest" },
            stroke: { value: "#333" },
            strokeWidth: { value: 2 },
          },
        },
      },
    ],
  };
}

export interface FigureRow {
  readonly rules: string;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export interface FigurePanel {
  readonly name: string;
  readonly meaning: string;
  readonly rules: readonly string[];
  readonly rows: readonly FigureRow[];
}

/** Beyond this ratio between the largest and the smallest a linear axis shows the largest alone. */
const LOG_FROM = 30;

/** A dot a rule, with its interval; a logarithmic axis where figures lie far apart. */
export function figurePanel({ name, meaning, rules, rows }: FigurePanel): GroupMark {
  const lowest = rows.reduce((least, { low }) => Math.min(least, low), Number.POSITIVE_INFINITY);
  const highest = rows.reduce((most, { high }) => Math.max(most, high), 0);
  const isLog = lowest > 0 && highest / lowest > LOG_FROM;
  return {
    type: "group",
    title: { text: name, subtitle: meaning, subtitleFontSize: 10 },
    encode: { update: { width: { value: WIDTH }, height: { value: rules.length * ROW_HEIGHT } } },
    data: [
      { name: "own", source: "figures", transform: [{ type: "filter", expr: `datum.name === '${name}'` }] },
    ],
    scales: [
      isLog
        ? { name: "x", type: "log", domain: [lowest * 0.8, highest * 1.3], range: [0, WIDTH] }
        : { name: "x", type: "linear", domain: [0, highest * 1.12 || 1], range: [0, WIDTH] },
      { name: "y", type: "band", domain: [...rules], range: [0, rules.length * ROW_HEIGHT] },
    ],
    axes: [
      {
        orient: "bottom",
        scale: "x",
        grid: true,
        tickCount: 5,
        format: highest < 1 ? "~g" : "~s",
        title: isLog ? "logarithmic" : "",
      },
      { orient: "left", scale: "y", grid: false },
    ],
    marks: [
      {
        type: "rule",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "low" },
            x2: { scale: "x", field: "high" },
            y: { scale: "y", field: "rules", band: 0.5 },
            stroke: { value: "#888" },
            strokeWidth: { value: 2 },
          },
        },
      },
      {
        type: "symbol",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "mean" },
            y: { scale: "y", field: "rules", band: 0.5 },
            size: { value: 60 },
            fill: { signal: "datum.rules === 'waggle' ? '#e8710a' : '#4c78a8'" },
          },
        },
      },
      {
        type: "text",
        from: { data: "own" },
        encode: {
          enter: {
            x: { scale: "x", field: "mean", offset: 8 },
            y: { scale: "y", field: "rules", band: 0.5, offset: -7 },
            text: { signal: "format(datum.mean, datum.mean >= 1000 ? ',.0f' : '.3~g')" },
            fontSize: { value: 9 },
            fill: { value: "#444" },
          },
        },
      },
    ],
  };
}

function isOf(rule: string): string {
  return `datum.rule === '${rule}'`;
}
