// What the reader of the live view has chosen: table, order, filter, position. Keys change it; answers of the swarm do
// not. Pure: no terminal and no clock.

import type { StatusResponse } from "../../protocol/schemas.ts";
import type { Key } from "./screen.ts";
import type { LiveRow, LiveTable } from "./status-tables.ts";

export interface Choice {
  /** Column that sorts the rows; undefined: the most important first. */
  readonly column: number | undefined;
  readonly isReversed: boolean;
}

export interface LiveModel {
  readonly tables: readonly LiveTable[];
  /** Index of the shown table. */
  readonly table: number;
  readonly choiceByTable: ReadonlyMap<string, Choice>;
  /** Words that a row must all contain. */
  readonly filter: string;
  readonly isTyping: boolean;
  /** First row shown. */
  readonly top: number;
  readonly showsAll: boolean;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
}

export function newModel(
  tables: readonly LiveTable[],
  { showsAll }: { readonly showsAll: boolean },
): LiveModel {
  return {
    tables,
    table: 0,
    choiceByTable: new Map(),
    filter: "",
    isTyping: false,
    top: 0,
    showsAll,
    isPaused: false,
    showsHelp: false,
  };
}

const byImportance: Choice = { column: undefined, isReversed: false };

export function tableOf({ tables, table }: LiveModel): LiveTable {
  const found = tables[table] ?? tables[0];
  if (found === undefined) throw new RangeError("the live view has a table");
  return found;
}

export function choiceOf(model: LiveModel): Choice {
  return model.choiceByTable.get(tableOf(model).name) ?? byImportance;
}

/** The rows of the shown table that match the filter, in the chosen order. `of` counts the rows without the filter. */
export function rowsOf(
  model: LiveModel,
  status: StatusResponse,
): { readonly rows: readonly LiveRow[]; readonly of: number } {
  const all = tableOf(model).rows(status, model);
  const words = model.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all.filter(({ cells }) => {
    const text = cells.join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const { column, isReversed } = choiceOf(model);
  if (column === undefined) return { rows: isReversed ? rows.toReversed() : rows, of: all.length };
  const sorted = rows.toSorted((one, other) => compared(one.sortBy[column], other.sortBy[column]));
  return { rows: isReversed ? sorted.toReversed() : sorted, of: all.length };
}

/** Numbers from large to small, names from A to Z. */
function compared(one: number | string = 0, other: number | string = 0): number {
  if (typeof one === "number" && typeof other === "number") return other - one;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

/** @param page rows that fit the screen, for paging
 *  @returns `quit` at the end, `interrupt` at Ctrl-C */
export function pressed(model: LiveModel, key: Key, page: number): LiveModel | "quit" | "interrupt" {
  if (key.ctrl && key.name === "c") return "interrupt";
  if (model.isTyping) return typed(model, key);
  if (model.showsHelp) return { ...model, showsHelp: false };
  switch (key.name ?? key.text) {
    case "q":
      return "quit";
    case "?":
    case "h":
      return { ...model, showsHelp: true };
    case "/":
      return { ...model, isTyping: true };
    case "escape":
      return { ...model, filter: "", top: 0 };
    case "tab":
    case "right":
      return shown(model, model.table + (key.shift ? -1 : 1));
    case "left":
      return shown(model, model.table - 1);
    case "s":
      return sorted(model, key.shift ? -1 : 1);
    case "r":
      return chosen(model, { ...choiceOf(model), isReversed: !choiceOf(model).isReversed });
    case "a":
      return { ...model, showsAll: !model.showsAll, top: 0 };
    case "p":
    case "space":
      return { ...model, isPaused: !model.isPaused };
    default:
      return moved(model, key, page);
  }
}

function moved(model: LiveModel, { name, text }: Key, page: number): LiveModel {
  const by = (rows: number) => ({ ...model, top: Math.max(0, model.top + rows) });
  switch (name) {
    case "down":
    case "j":
      return by(1);
    case "up":
    case "k":
      return by(-1);
    case "pagedown":
      return by(page);
    case "pageup":
      return by(-page);
    case "home":
    case "g":
      return { ...model, top: 0 };
    case "end":
      return { ...model, top: Number.MAX_SAFE_INTEGER };
    default: {
      const number = Number(text);
      return Number.isInteger(number) && number >= 1 && number <= model.tables.length
        ? shown(model, number - 1)
        : model;
    }
  }
}

/** The filter is typed: Enter keeps the filter, Escape clears it. */
function typed(model: LiveModel, { name, text, ctrl }: Key): LiveModel {
  switch (name) {
    case "return":
    case "enter":
      return { ...model, isTyping: false };
    case "escape":
      return { ...model, isTyping: false, filter: "", top: 0 };
    case "backspace":
      return { ...model, filter: [...model.filter].slice(0, -1).join(""), top: 0 };
    default: {
      if (ctrl && name === "u") return { ...model, filter: "", top: 0 };
      const isCharacter = text !== undefined && !ctrl && /^[^\p{Cc}\p{Cf}]$/u.test(text);
      return isCharacter ? { ...model, filter: `${model.filter}${text}`, top: 0 } : model;
    }
  }
}

function shown(model: LiveModel, table: number): LiveModel {
  const { length } = model.tables;
  return { ...model, table: (table + length) % length, top: 0 };
}

/** Steps through the orders: importance, then each column. */
function sorted(model: LiveModel, step: 1 | -1): LiveModel {
  const count = tableOf(model).columns.length + 1;
  const { column } = choiceOf(model);
  const next = ((column === undefined ? 0 : column + 1) + step + count) % count;
  return chosen(model, { column: next === 0 ? undefined : next - 1, isReversed: false });
}

function chosen(model: LiveModel, choice: Choice): LiveModel {
  return {
    ...model,
    choiceByTable: new Map(model.choiceByTable).set(tableOf(model).name, choice),
    top: 0,
  };
}

/** With the first row moved back to where the last page begins, at most. */
export function withinRows(
  model: LiveModel,
  { rows, page }: { readonly rows: number; readonly page: number },
): LiveModel {
  const top = Math.min(model.top, Math.max(0, rows - page));
  return top === model.top ? model : { ...model, top };
}
