// A line of a snapshot: `[number, row's name, its fields, seal]`, JSON without line breaks. The number reveals missing,
// doubled and misplaced lines; the seal reveals changed text. The seal guards against accidents and names the damaged
// line. Not here: a hash that also guards against forgery (the storage of the lines).

import { Fields, refuse } from "./checked-fields.ts";

/** Each row's name, in writing order. Rows of one list are mixed, each below its owner. */
const rowGroups = [
  ["snapshot"],
  ["kind"],
  ["record"],
  ["resource"],
  ["rate"],
  ["removed-rate"],
  ["grant"],
  ["project", "user"],
  ["reserved-type"],
  ["agent", "agent-record", "suspension", "attempt"],
  ["slot-lease"],
  ["ended-slot-lease"],
  ["uncharged-slot-lease"],
  ["hold"],
  ["refusal"],
  ["affinity"],
  ["queue", "queue-project", "queue-user", "partition"],
  ["task"],
  ["ended-task"],
  ["uncharged"],
  ["end"],
] as const;

export type RowName = (typeof rowGroups)[number][number];

/** The group of each row name. */
export const groupByName: ReadonlyMap<RowName, number> = new Map(
  rowGroups.flatMap((names, group) => names.map((name) => [name, group] as const)),
);

/** A row before encoding. Undefined fields are left out. */
export type Row = readonly [name: RowName, fields: object];

/** @param number of the line, from 1 */
export function sealedLine(number: number, [name, fields]: Row): string {
  const text = `[${number},"${name}",${JSON.stringify(fields)}`;
  return `${text},${sealOf(text, text.length)}]`;
}

/** Parses lines in one go. V8 places the values of a long text where the garbage collector does not copy them.
 *  @returns a value per line; undefined unless the lines hold one value each */
export function parsedLines(lines: readonly string[]): readonly unknown[] | undefined {
  const rows = parsedOrNothing(`[${lines.join(",")}]`);
  return Array.isArray(rows) && rows.length === lines.length ? rows : undefined;
}

/** @param row the row in `parsedLines`; parsed here if undefined
 *  @throws JournalDamagedError unless the line has this number and is unchanged */
export function openedLine(
  line: string,
  number: number,
  row: unknown = parsedOrNothing(line),
): { readonly name: RowName; readonly fields: Fields } {
  if (!Array.isArray(row) || row.length !== 4) refuse("is no row");
  const [saidNumber, name, fields, seal] = row as unknown[];
  if (seal !== sealOf(line, line.lastIndexOf(","))) refuse("is not as it was written");
  if (saidNumber !== number) refuse(`says that it is line ${String(saidNumber)}`);
  if (!isRowName(name)) refuse(`is a row that this version does not know: ${String(name)}`);
  return { name, fields: new Fields(fields, name) };
}

function parsedOrNothing(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The caller reports text that does not parse as no row.
    return undefined;
  }
}

function isRowName(name: unknown): name is RowName {
  return (groupByName as ReadonlyMap<unknown, number>).has(name);
}

/** FNV-1a in 32 bits over UTF-16 code units: two texts that differ in one unit always have different seals. */
function sealOf(text: string, end: number): number {
  let seal = 0x811c9dc5;
  for (let at = 0; at < end; at += 1) seal = Math.imul(seal ^ text.charCodeAt(at), 0x01000193);
  return seal >>> 0;
}
