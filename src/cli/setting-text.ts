// Settings for people: tables with one row each, and the lines of a single entry. With --json each row is printed
// whole. Not here: requests (project.ts and similar verbs).

import type { Setting } from "../client/operations.ts";
import { formatCount } from "../count-text.ts";
import { printable } from "./output.ts";
import { plainDuration } from "./setting-flags.ts";
import { type Cell, type Column, renderTable } from "./table.ts";
import type { VerbContext } from "./verb.ts";

/** Name and value of a setting. */
export type SettingLine = readonly [name: string, value: string];

export function budgetText(
  budget: { readonly tokens: number; readonly windowMs: number; readonly mode: string } | undefined,
): string {
  if (budget === undefined) return "none";
  return `${formatCount(budget.tokens)} tokens in ${plainDuration(budget.windowMs)}, ${budget.mode}`;
}

export function limitText(limit: number | undefined): string {
  return limit === undefined ? "no limit" : formatCount(limit);
}

/** A heading, and one line per setting. */
export function settingLines(
  { output }: VerbContext,
  heading: string,
  lines: readonly SettingLine[],
): string {
  const width = Math.max(...lines.map(([name]) => name.length)) + 2;
  const { bold, dim } = output.colors;
  return [
    bold(printable(heading)),
    ...lines.map(([name, value]) => `  ${dim(name.padEnd(width))}${printable(value)}`),
  ].join("\n");
}

/** Prints the new settings, or that they were unchanged. @param record name of the entry, for programs */
export function printSetting(
  context: VerbContext,
  {
    record,
    heading,
    setting,
    lines,
  }: {
    readonly record: object;
    readonly heading: string;
    readonly setting: Setting<object>;
    readonly lines: readonly SettingLine[];
  },
): void {
  const { changed, term, idx, settings, warnings } = setting;
  const title = `${heading} ${changed ? "set" : "unchanged"}`;
  context.output.datum({ ...record, changed, term, idx, settings, warnings }, () =>
    settingLines(context, title, lines),
  );
  noteWarnings(context, setting);
}

/** Notes for people; programs find the warnings in the record. */
export function noteWarnings({ output }: VerbContext, { warnings = [] }: Setting<object | null>): void {
  for (const warning of warnings) output.note(`beware: ${printable(warning)}`);
}

/** One row per entry, as a table or as records; a sentence without entries. */
export function printRows<Row extends object>(
  { output }: VerbContext,
  rows: readonly Row[],
  view: {
    readonly columns: readonly Column[];
    readonly cells: (row: Row) => readonly Cell[];
    /** Where nothing is set. */
    readonly empty: string;
    /** Rows left out because the answer would not fit a message. */
    readonly omitted: number;
  },
): void {
  if (output.json) for (const row of rows) output.datum(row, () => "");
  else if (rows.length === 0) output.note(view.empty);
  else output.datum(rows, () => renderTable(output, view.columns, rows.map(view.cells)));
  if (view.omitted > 0)
    output.note(`${formatCount(view.omitted)} more do not fit the answer: use show for a single row`);
}
