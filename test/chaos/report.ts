// Formats the figures: replaces the part of docs/reliability.md between two marks, and keeps the rest.

import { readFileSync, writeFileSync } from "node:fs";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import type { MemoryMeasure } from "./memory.ts";
import { groupsBy, type PublishedRow, type RecoveryRow, sorted } from "./published.ts";
import { requiredMsOf } from "./required.ts";
import { NEVER_MS } from "./tally.ts";

const BEGIN = "<!-- chaos: written by `npm run chaos -- --report`; edit the text around it -->";
const END = "<!-- /chaos -->";

const kindsOfFaults: readonly (readonly [name: string, promises: readonly PromiseNumber[]])[] = [
  ["lost", ["P1"]],
  ["with two outcomes", ["P2"]],
  ["contradicted", ["P4", "P5", "P6", "P8", "P12", "P13"]],
  ["over capacity", ["P7"]],
];

/** @throws Error when a mark is missing */
export function writeReport(page: string, rows: readonly PublishedRow[]): void {
  const text = readFileSync(page, "utf8");
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from === -1 || to < from) throw new Error(`${page} lacks the marks ${BEGIN} and ${END}`);
  const before = text.slice(0, from + BEGIN.length);
  writeFileSync(page, `${before}\n\n${tablesOf(rows)}\n\n${text.slice(to)}`);
}

/** Findings, times of recovery, and memory if sampled. The oldest server comes first. */
export function tablesOf(unsorted: readonly PublishedRow[]): string {
  const rows = sorted(unsorted);
  const servers = [...new Set(rows.map(({ server }) => server))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const tables = [outcomeTable(rows, servers), recoveryTable(rows, servers)];
  const sampled = rows.filter(({ memory }) => memory.length > 0);
  return [...tables, ...sampled.map(memoryTable)].join("\n\n");
}

/** One line for each part and T. */
function outcomeTable(rows: readonly PublishedRow[], servers: readonly string[]): string {
  const lines = groupsBy(rows, partOf).map((ofPart) => [
    ...nameOf(ofPart),
    ...servers.map((server) => ofPart.find((row) => row.server === server)?.rounds ?? ""),
    total(ofPart, ({ accepted }) => accepted),
    total(ofPart, ({ observations }) => observations),
    total(ofPart, ({ segmentChanges }) => segmentChanges),
    foundIn(ofPart),
    range(ofPart.flatMap(({ from, to }) => [from, to])),
    range(ofPart.flatMap(({ load }) => [load.min, load.max]).map((load) => load.toFixed(0))),
  ]);
  const rounds = servers.map((server) => `rounds on ${server}`);
  const counts = ["tasks accepted", "answers judged", "changes of segment"];
  return table([...NAME, ...rounds, ...counts, "found", "measured", "load"], lines);
}

/** One line for each figure of a part: on each server the median, the maximum and the number of times. */
function recoveryTable(rows: readonly PublishedRow[], servers: readonly string[]): string {
  const lines = groupsBy(rows, partOf).flatMap((ofPart) => {
    const figures = [...new Set(ofPart.flatMap(({ recoveries }) => recoveries.map(({ figure }) => figure)))];
    return figures.map((figure) => [
      ...nameOf(ofPart),
      figure,
      requiredOf(figure, ofPart),
      ...servers.map((server) =>
        recoveryText(
          ofPart.find((row) => row.server === server)?.recoveries.find((one) => one.figure === figure),
        ),
      ),
    ]);
  });
  return table(
    [...NAME, "from → to", "required", ...servers.map((server) => `${server}: p50, max (times)`)],
    lines,
  );
}

/** One line for each process that ran from the warm-up to the end. */
function memoryTable({ part, server, memory }: PublishedRow): string {
  const textOf = (process: string, measure: MemoryMeasure) => {
    const row = memory.find((one) => one.process === process && one.measure === measure);
    if (row === undefined) return "";
    return `${row.beforeMib.toFixed(0)} → ${row.afterMib.toFixed(0)} MiB (${row.growthPercent.toFixed(1)} %)`;
  };
  const processes = [...new Set(memory.map(({ process }) => process))];
  const lines = processes.map((process) => [process, textOf(process, "in use"), textOf(process, "resident")]);
  return table([`${part} on ${server}, after the warm-up → at the end`, "in use", "resident"], lines);
}

const NAME = ["part", "T"];

function partOf({ part, leaderTimeoutMs }: PublishedRow): string {
  return `${part} ${leaderTimeoutMs}`;
}

function nameOf(ofPart: readonly PublishedRow[]): readonly string[] {
  const [first] = ofPart;
  return first === undefined ? [] : [first.part, `${first.leaderTimeoutMs / 1_000} s`];
}

/** `nothing`, or each kind of fault with its number. */
function foundIn(rows: readonly PublishedRow[]): string {
  const kinds = kindsOfFaults.map(
    ([name, promises]) => [name, total(rows, (row) => count(row, promises))] as const,
  );
  const stuck = total(rows, (row) => row.stuck);
  const found = [...kinds, ["did not come back", stuck] as const].filter(([, times]) => times > 0);
  return found.length === 0 ? "nothing" : found.map(([name, times]) => `${times} ${name}`).join(", ");
}

function requiredOf(figure: RecoveryRow["figure"], [row]: readonly PublishedRow[]): string {
  const requiredMs = row === undefined ? undefined : requiredMsOf(figure, row.leaderTimeoutMs);
  return requiredMs === undefined ? "" : `${requiredMs / 1_000} s`;
}

function recoveryText(recovery: RecoveryRow | undefined): string {
  if (recovery === undefined) return "";
  const { p50Ms, maxMs, times, over = 0 } = recovery;
  return `${seconds(p50Ms)}, ${seconds(maxMs)} (${times}${over === 0 ? "" : `, ${over} too slow`})`;
}

function count({ violationsByPromise }: PublishedRow, promises: readonly PromiseNumber[]): number {
  return promises.reduce((sum, promise) => sum + (violationsByPromise[promise] ?? 0), 0);
}

function total(rows: readonly PublishedRow[], of: (row: PublishedRow) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0);
}

/** The first and the last in order, or the only one. */
function range(values: readonly string[]): string {
  const inOrder = values.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const [first, last] = [inOrder[0] ?? "", inOrder.at(-1) ?? ""];
  return first === last ? first : `${first} to ${last}`;
}

function seconds(ms: number): string {
  return ms >= NEVER_MS ? "never" : `${(ms / 1_000).toFixed(2)} s`;
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lineOf = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, place) => (place < 2 ? "---" : "--:"));
  return [lineOf(head), `|${rule.join("|")}|`, ...rows.map(lineOf)].join("\n");
}
