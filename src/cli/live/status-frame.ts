// A frame of the live view: summary, tabs, the shown table, and a line of keys at the bottom. Pure: lines of the
// terminal's size from the model and the newest answer.

import { formatCount } from "../../count-text.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { brokenAt } from "../format.ts";
import { type Output, printable } from "../output.ts";
import { statusSummary } from "../status-summary.ts";
import { renderTable, textWidth } from "../table.ts";
import type { ScreenSize } from "./screen.ts";
import { choiceOf, type LiveModel, rowsOf, tableOf } from "./status-model.ts";
import type { LiveRow, LiveTable } from "./status-tables.ts";

export interface FrameView extends Pick<Output, "colors" | "asStarted"> {
  readonly size: ScreenSize;
  readonly project: string | undefined;
  /** Shown in place of the keys, such as the reason why the view is old. */
  readonly notice: string | undefined;
  /** Lines that the summary takes at least: the table below then keeps its place. Default 0. */
  readonly summaryMin?: number;
}

/** The summary takes at most this share of the screen. */
const SUMMARY_SHARE = 0.4;
/** Lines beside summary and rows: a blank line, tabs, column heads, count, keys. */
const FIXED_LINES = 5;

export interface Frame {
  readonly lines: readonly string[];
  /** Rows that match the filter, and rows that fit. */
  readonly rows: number;
  readonly page: number;
  /** Lines of the summary. */
  readonly summary: number;
}

export function frameOf(model: LiveModel, status: StatusResponse, view: FrameView): Frame {
  const { size, summaryMin = 0 } = view;
  const needed = summaryLines(status, view);
  const summary = [...needed, ...blankLines(summaryMin - needed.length)];
  const page = Math.max(1, size.rows - summary.length - FIXED_LINES);
  const { rows, of } = rowsOf(model, status);
  if (model.showsHelp) return { lines: helpLines(view), rows: rows.length, page, summary: summary.length };
  const top = Math.min(model.top, Math.max(0, rows.length - page));
  const lines = [
    ...summary,
    "",
    tabLine(model, status, view),
    ...tableLines(model, rows, view, { top, page }),
  ];
  const blank = blankLines(size.rows - lines.length - 2);
  const shown = { top, page, rows: rows.length, of, omitted: tableOf(model).omitted(status) };
  return {
    lines: [...lines, ...blank, countLine(model, shown, view), bottomLine(model, view)].slice(0, size.rows),
    rows: rows.length,
    page,
    summary: summary.length,
  };
}

function blankLines(count: number): string[] {
  return Array.from({ length: Math.max(0, count) }, () => "");
}

function summaryLines(status: StatusResponse, { size, colors, asStarted, project }: FrameView): string[] {
  const { columns, rows } = size;
  const lines = statusSummary(status, { columns, colors, asStarted, project }).split("\n");
  return lines.slice(0, Math.max(3, Math.floor(rows * SUMMARY_SHARE)));
}

/** `1 agents 12  2 queues 3 …`; without counts on a narrow terminal, the shown table alone on a very narrow one. */
function tabLine(model: LiveModel, status: StatusResponse, { size, colors }: FrameView): string {
  const countOf = (table: LiveTable) => table.rows(status, model).length + table.omitted(status);
  const tab = (table: LiveTable, at: number) => `${at + 1} ${table.name}`;
  const named = model.tables.map((table, at) => ` ${tab(table, at)} ${formatCount(countOf(table))} `);
  const short = model.tables.map((table, at) => ` ${tab(table, at)} `);
  const fits = (tabs: readonly string[]) => textWidth(tabs.join("")) <= size.columns;
  const tabs = fits(named) ? named : short;
  const toned = tabs.map((text, at) => (at === model.table ? colors.inverse(text) : colors.dim(text)));
  return fits(tabs) ? toned.join("") : (toned[model.table] ?? "");
}

function tableLines(
  model: LiveModel,
  rows: readonly LiveRow[],
  { size, colors }: FrameView,
  { top, page }: { readonly top: number; readonly page: number },
): string[] {
  const { columns } = tableOf(model);
  const { column, isReversed } = choiceOf(model);
  const mark = (at: number) => (at === column ? (isReversed ? " ▲" : " ▼") : "");
  const marked = columns.map((each, at) => ({ ...each, head: `${each.head}${mark(at)}` }));
  const cells = rows.map((row) => row.cells);
  const [heads = "", ...lines] = renderTable({ columns: size.columns, colors }, marked, cells).split("\n");
  if (rows.length === 0)
    return [heads, colors.dim(model.filter === "" ? "none" : "no row matches the filter")];
  const tones = { warning: colors.yellow, dim: colors.dim } as const;
  return [
    heads,
    ...lines.slice(top, top + page).map((line, at) => {
      const tone = rows[top + at]?.tone;
      return tone === undefined ? line : tones[tone](line);
    }),
  ];
}

interface Shown {
  readonly top: number;
  readonly page: number;
  readonly rows: number;
  readonly of: number;
  readonly omitted: number;
}

/** `rows 1–20 of 340, filter "gpu", paused`. */
function countLine(
  model: LiveModel,
  { top, page, rows, of, omitted }: Shown,
  { size, colors }: FrameView,
): string {
  const last = Math.min(rows, top + page);
  const parts = [
    rows === 0 ? "" : `rows ${formatCount(top + 1)}–${formatCount(last)} of ${formatCount(rows)}`,
    model.filter === "" ? "" : `filter "${printable(model.filter)}" hides ${formatCount(of - rows)}`,
    omitted === 0 ? "" : `${formatCount(omitted)} more${model.showsAll ? "" : " (press a)"}`,
    model.isPaused ? "paused" : "",
  ].filter((part) => part !== "");
  return colors.dim(cut(parts.join(", "), size.columns));
}

function bottomLine(model: LiveModel, { size, colors, notice }: FrameView): string {
  const { columns } = size;
  if (model.isTyping)
    return cut(`filter: ${printable(model.filter)}▏  Enter keeps the filter, Escape clears it`, columns);
  if (notice !== undefined) return colors.yellow(cut(printable(notice), columns));
  return colors.dim(cut("q quit · tab table · s sort · r reverse · / filter · ? help", columns));
}

function cut(text: string, columns: number): string {
  return textWidth(text) <= columns ? text : `${[...text].slice(0, Math.max(0, columns - 1)).join("")}…`;
}

const keys: readonly (readonly [keys: string, does: string])[] = [
  ["1 … 5, tab, ← →", "choose the table"],
  ["s, S", "sort by the next, the previous column; at first the most important rows come first"],
  ["r", "reverse the order"],
  ["/", "filter: rows that contain every word; Enter keeps the filter, Escape clears it"],
  ["↑ ↓, page up, page down, home, end", "scroll"],
  ["a", "also offline agents, and rows that did not fit the answer; again: without them"],
  ["space, p", "pause, go on"],
  ["q, Ctrl-C", "quit"],
];

/** On a low terminal the last keys are left out, and never the way back. */
function helpLines({ size, colors }: FrameView): string[] {
  const lines = keys.flatMap(([pressedKeys, does]) => [
    colors.bold(cut(pressedKeys, size.columns)),
    ...brokenAt(does, Math.max(20, size.columns - 4)).map((line) => `    ${line}`),
  ]);
  return [...lines.slice(0, size.rows - 1), colors.dim("any key goes back")];
}
