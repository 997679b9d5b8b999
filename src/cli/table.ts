// Tables for people: no frames, two spaces between columns, as wide as the terminal at most.
// Into a pipe nothing is cut, so that grep and awk see whole values.

import { brokenAt } from "./format.ts";
import { type Output, printable } from "./output.ts";

export interface Column {
  readonly head: string;
  readonly align?: "left" | "right";
  /** Treatment of the column on a narrow terminal. Default: cells are shortened.
   *  below: cells go below their rows, unshortened. drop: the column is left out, the last one first.
   *  whole: cells keep their full text, so that a user can copy the text. */
  readonly whenNarrow?: "below" | "drop" | "whole";
}

export type Cell = string | number;

/** Between two columns, in characters. */
export const GAP = 2;
/** Narrower, a column says nothing. */
const WIDTH_MIN = 4;
/** Columns are shortened to this width before a column is left out. */
const WIDTH_READABLE = 20;
/** Indent of lines below their row. */
const INDENT = 4;

/** The table as text, without a line end; only heads without rows. */
export function renderTable(
  output: Pick<Output, "columns" | "colors">,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): string {
  const all = columns.map((column, at): Filled => {
    const cells = rows.map((row) => printable(String(row[at] ?? "")));
    return { ...column, cells, natural: widest([column.head, ...cells]) };
  });
  const { beside, below } = arranged(all, output.columns);
  const lines = linesOf(beside, output);
  if (below.length === 0) return lines.join("\n");
  const [heads = "", ...rest] = lines;
  return [heads, ...rest.flatMap((line, at) => [line, ...linesBelow(below, at, output)])].join("\n");
}

function widest(texts: readonly string[]): number {
  return texts.reduce((width, text) => Math.max(width, textWidth(text)), 0);
}

interface Filled extends Column {
  readonly cells: readonly string[];
  /** Terminal columns of the widest cell. */
  readonly natural: number;
}

/** Columns beside each other, and columns whose cells go below their rows. */
function arranged(all: readonly Filled[], columns: number | undefined) {
  if (columns === undefined || totalWidth(all.map(({ natural }) => natural)) <= columns)
    return { beside: all, below: [] };
  const below = all.filter(({ whenNarrow }) => whenNarrow === "below");
  const beside = all.filter((column) => !below.includes(column));
  const readable = ({ natural, whenNarrow }: Filled) =>
    whenNarrow === "whole" ? natural : Math.min(natural, WIDTH_READABLE);
  while (totalWidth(beside.map(readable)) > columns) {
    const last = beside.findLastIndex(({ whenNarrow }) => whenNarrow === "drop");
    if (last === -1) break;
    beside.splice(last, 1);
  }
  return { beside, below };
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP, 0) - GAP;
}

function linesOf(columns: readonly Filled[], output: Pick<Output, "columns" | "colors">): string[] {
  const widths = fitWidths(columns, output.columns);
  const { dim } = output.colors;
  const line = (textOf: (column: Filled) => string, tone = (text: string) => text) =>
    columns
      .map((column, at) => aligned(fitted(textOf(column), widths[at] ?? 0), widths[at] ?? 0, column, tone))
      .join(" ".repeat(GAP))
      .trimEnd();
  const rows = columns[0]?.cells ?? [];
  return [line(({ head }) => head, dim), ...rows.map((_, row) => line(({ cells }) => cells[row] ?? ""))];
}

function aligned(text: string, width: number, { align }: Column, tone: (text: string) => string): string {
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "right" ? `${space}${tone(text)}` : `${tone(text)}${space}`;
}

function linesBelow(
  below: readonly Filled[],
  row: number,
  { columns = 0, colors }: Pick<Output, "columns" | "colors">,
): string[] {
  return below
    .map(({ cells }) => cells[row] ?? "")
    .filter((cell) => cell !== "")
    .flatMap((cell) => brokenAt(cell, columns - INDENT))
    .map((line) => `${" ".repeat(INDENT)}${colors.dim(line)}`);
}

/** Shortens the widest columns, one character at a time, down to the width of their heads first. */
function fitWidths(
  columns: readonly Pick<Filled, "head" | "natural" | "whenNarrow">[],
  terminal: number | undefined,
): number[] {
  const widths = columns.map(({ natural }) => natural);
  if (terminal === undefined) return widths;
  let excess = totalWidth(widths) - terminal;
  for (const isHeadWhole of [true, false]) {
    const floors = columns.map(({ head, natural, whenNarrow }) =>
      whenNarrow === "whole" ? natural : Math.max(WIDTH_MIN, isHeadWhole ? head.length : 0),
    );
    const shrinkable = () => widths.map((width, at) => (width > (floors[at] ?? 0) ? width : 0));
    for (; excess > 0 && shrinkable().some((width) => width > 0); excess -= 1) {
      const candidates = shrinkable();
      const widest = candidates.indexOf(Math.max(...candidates));
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
  }
  return widths;
}

/** Cuts a text between characters to the given width: a sentence at its end, a name in its middle, because names often
 *  differ at their ends. */
function fitted(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  const tail = text.includes(" ")
    ? ""
    : headWithin([...text].reverse(), (width - 1) / 2)
        .reverse()
        .join("");
  return `${headWithin([...text], width - 1 - textWidth(tail)).join("")}…${tail}`;
}

/** The first characters that fit `width` columns. */
function headWithin(characters: readonly string[], width: number): string[] {
  let taken = 0;
  const end = characters.findIndex((character) => {
    taken += textWidth(character);
    return taken > width;
  });
  return end === -1 ? [...characters] : characters.slice(0, end);
}

const FULL_WIDTH =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Columns a text takes on a terminal. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += FULL_WIDTH.test(character) ? 2 : 1;
  return width;
}
