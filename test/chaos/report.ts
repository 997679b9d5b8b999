// The figures as a page: the part of docs/reliability.md between two marks is written anew, the rest is left alone.

import { readFileSync, writeFileSync } from "node:fs";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import { type PublishedRow, type RecoveryRow, sorted } from "./published.ts";
import { requiredMsOf } from "./required.ts";
import { NEVER_MS } from "./tally.ts";

const BEGIN = "<!-- chaos: written by `npm run chaos -- --report`; edit the text around it -->";
const END = "<!-- /chaos -->";
const NOT_KEPT = "not kept";

const lost: readonly PromiseNumber[] = ["P1"];
const doubled: readonly PromiseNumber[] = ["P2"];
const contradicted: readonly PromiseNumber[] = ["P4", "P5", "P6", "P8", "P12", "P13"];
const overfull: readonly PromiseNumber[] = ["P7"];

/** @throws Error when the page has not both marks */
export function writeReport(page: string, rows: readonly PublishedRow[]): void {
  const text = readFileSync(page, "utf8");
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from === -1 || to < from) throw new Error(`${page} lacks the marks ${BEGIN} and ${END}`);
  const before = text.slice(0, from + BEGIN.length);
  writeFileSync(page, `${before}\n\n${tablesOf(rows)}\n\n${text.slice(to)}`);
}

/** What was found, how soon swarms came back, and, where it was sampled, memory. By part, then by server, oldest
 *  first. */
export function tablesOf(unsorted: readonly PublishedRow[]): string {
  const rows = sorted(unsorted);
  const sampled = rows.filter(({ memory }) => memory.length > 0);
  const tables = [outcomeTable(rows), recoveryTable(rows)];
  return [...tables, ...(sampled.length === 0 ? [] : [memoryTable(sampled)])].join("\n\n");
}

/** One line a row. */
function outcomeTable(rows: readonly PublishedRow[]): string {
  const lines = rows.map((row) => [
    ...nameOf(row),
    daysOf(row),
    row.rounds,
    row.accepted,
    row.recordsEvery === 1 ? row.observations : `${row.observations}, of 1 task in ${row.recordsEvery}`,
    count(row, lost),
    count(row, doubled),
    count(row, contradicted),
    count(row, overfull),
    row.stuck,
    loadOf(row),
  ]);
  const head = ["measured", "rounds", "tasks accepted", "answers judged", "lost", "two outcomes"];
  return table([...NAME, ...head, "contradicted", "over capacity", "did not come back", "load"], lines);
}

/** One line a figure of a row. */
function recoveryTable(rows: readonly PublishedRow[]): string {
  const lines = rows.flatMap((row) =>
    row.recoveries.map((recovery) => [
      ...nameOf(row),
      recovery.figure,
      recovery.times,
      ...requiredOf(recovery, row.leaderTimeoutMs),
      seconds(recovery.p50Ms),
      seconds(recovery.p95Ms),
      seconds(recovery.maxMs),
    ]),
  );
  return table([...NAME, "from → to", "times", "required", "over it", "p50", "p95", "max"], lines);
}

/** What is required, and how many took longer; empty where nothing is. */
function requiredOf({ figure, over }: RecoveryRow, leaderTimeoutMs: number): readonly (string | number)[] {
  const requiredMs = requiredMsOf(figure, leaderTimeoutMs);
  return requiredMs === undefined ? ["", ""] : [`${requiredMs / 1_000} s`, over ?? NOT_KEPT];
}

/** Of processes that lived throughout: after the warm-up, and at the end. */
function memoryTable(rows: readonly PublishedRow[]): string {
  const lines = rows.flatMap((row) =>
    row.memory.map(({ process, measure, beforeMib, afterMib, growthPercent }) => [
      ...nameOf(row),
      process,
      measure,
      beforeMib.toFixed(0),
      afterMib.toFixed(0),
      `${growthPercent.toFixed(1)} %`,
    ]),
  );
  return table([...NAME, "process", "memory", "MiB after the warm-up", "MiB at the end", "growth"], lines);
}

const NAME = ["part", "server", "T", "code"];

function nameOf({ part, server, leaderTimeoutMs, commit, isOrBefore }: PublishedRow): readonly string[] {
  const code = isOrBefore === true ? `at or before ${commit}` : commit;
  return [part, server, `${leaderTimeoutMs / 1_000} s`, code];
}

function daysOf({ from, to }: PublishedRow): string {
  if (from === undefined) return `by ${to}`;
  return from === to ? to : `${from} to ${to}`;
}

function count({ violationsByPromise }: PublishedRow, promises: readonly PromiseNumber[]): number {
  return promises.reduce((sum, promise) => sum + (violationsByPromise[promise] ?? 0), 0);
}

function loadOf({ load }: PublishedRow): string {
  if (load.min === undefined && load.max === undefined) return NOT_KEPT;
  const [min, max] = [load.min?.toFixed(0) ?? "?", load.max?.toFixed(0) ?? "?"];
  return min === max ? min : `${min} to ${max}`;
}

function seconds(ms: number | undefined): string {
  if (ms === undefined) return NOT_KEPT;
  return ms >= NEVER_MS ? "never" : `${(ms / 1_000).toFixed(2)} s`;
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lineOf = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, place) => (place < 2 ? "---" : "--:"));
  return [lineOf(head), `|${rule.join("|")}|`, ...rows.map(lineOf)].join("\n");
}
