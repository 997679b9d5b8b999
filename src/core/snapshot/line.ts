// A line of a snapshot: `[number, row's name, its fields, seal]`, JSON without line breaks. The number says which line
// it is, so that one that is missing, doubled or elsewhere is seen; the seal, that its text is what was written.
// The seal is against accidents and names the line. Not here: a hash that also stands against a forger, which is the
// business of whoever stores the lines.

import { Fields, refuse } from "./checked-fields.ts";

/** Each row's name, in the order in which they stand. Those in one list stand mixed, each below what it belongs to. */
const rowGroups = [
  ["snapshot"],
  ["kind"],
  ["record"],
  ["resource"],
  ["rate"],
  ["removed-rate"],
  ["project", "user"],
  ["reserved-type"],
  ["agent", "agent-record", "suspension", "attempt"],
  ["slot-lease"],
  ["ended-slot-lease"],
  ["queue", "queue-project", "queue-user", "partition"],
  ["task"],
  ["ended-task"],
  ["uncharged"],
  ["end"],
] as const;

export type RowName = (typeof rowGroups)[number][number];

/** By name, which group of rows it is in. */
export const groupByName: ReadonlyMap<RowName, number> = new Map(
  rowGroups.flatMap((names, group) => names.map((name) => [name, group] as const)),
);

/** A row before it is a line. Fields that are undefined are left out. */
export type Row = readonly [name: RowName, fields: object];

/** @param number of the line, from 1 */
export function sealedLine(number: number, [name, fields]: Row): string {
  const text = `[${number},"${name}",${JSON.stringify(fields)}`;
  return `${text},${sealOf(text, text.length)}]`;
}

/** @throws JournalDamagedError for anything but the line of that number, as it was written */
export function openedLine(
  line: string,
  number: number,
): { readonly name: RowName; readonly fields: Fields } {
  const row = parsedOrNothing(line);
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
    // What does not parse is no row, which is what the caller says.
    return undefined;
  }
}

function isRowName(name: unknown): name is RowName {
  return (groupByName as ReadonlyMap<unknown, number>).has(name);
}

/** FNV-1a in 32 bits over UTF-16 code units: of two texts that differ in one unit it differs surely. */
function sealOf(text: string, end: number): number {
  let seal = 0x811c9dc5;
  for (let at = 0; at < end; at += 1) seal = Math.imul(seal ^ text.charCodeAt(at), 0x01000193);
  return seal >>> 0;
}
