// Tables for people: no frames, two spaces between columns, as wide as the terminal at most.
// Into a pipe nothing is cut, so that grep and awk see whole values.

import Table from "cli-table3";
import { type Output, printable } from "./output.ts";

export interface Column {
  readonly head: string;
  readonly align?: "left" | "right";
}

export type Cell = string | number;

/** Between two columns, in characters. */
export const GAP = 2;
/** Narrower, a column says nothing. */
const WIDTH_MIN = 4;

const noFrame = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "",
};

/** The table as text, without a line end; heads alone when there is no row. */
export function renderTable(
  output: Pick<Output, "columns" | "colors">,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => printable(String(cell))));
  const widths = fitWidths(naturalWidths(columns, cells), output.columns);
  const table = new Table({
    head: columns.map((column) => output.colors.dim(column.head)),
    colWidths: widths.map((width) => width + GAP),
    colAligns: columns.map((column) => column.align ?? "left"),
    chars: noFrame,
    style: { "padding-left": 0, "padding-right": GAP, head: [], border: [], compact: true },
  });
  table.push(...cells.map((row) => row.map((cell, at) => fitted(cell, widths[at] ?? 0))));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function naturalWidths(columns: readonly Column[], rows: readonly (readonly string[])[]): number[] {
  return columns.map((column, at) =>
    Math.max(column.head.length, ...rows.map((row) => textWidth(row[at] ?? ""))),
  );
}

/** Takes what is too much from the widest columns, one character at a time. */
export function fitWidths(natural: readonly number[], columns: number | undefined): number[] {
  const widths = [...natural];
  if (columns === undefined) return widths;
  let excess = widths.reduce((sum, width) => sum + width + GAP, 0) - GAP - columns;
  while (excess > 0) {
    const widest = Math.max(...widths);
    if (widest <= WIDTH_MIN) return widths;
    widths[widths.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
  return widths;
}

/** A text cut between characters to the columns there are. The library cuts inside them. */
function fitted(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let shown = "";
  let taken = 1;
  for (const character of text) {
    taken += textWidth(character);
    if (taken > width) break;
    shown += character;
  }
  return `${shown}…`;
}

const FULL_WIDTH =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Columns a text takes on a terminal. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += FULL_WIDTH.test(character) ? 2 : 1;
  return width;
}
