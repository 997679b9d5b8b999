// The figures as a page: the part of docs/reliability.md between two marks is written anew, the rest is left alone.

import { readFileSync, writeFileSync } from "node:fs";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import { type Figure, quantile } from "./figures.ts";
import { NEVER_MS, type PartTally } from "./tally.ts";

const BEGIN = "<!-- chaos: written by `npm run chaos`; edit the text around it -->";
const END = "<!-- /chaos -->";

const lost: readonly PromiseNumber[] = ["P1"];
const doubled: readonly PromiseNumber[] = ["P2"];
const contradicted: readonly PromiseNumber[] = ["P4", "P5", "P6", "P8", "P12", "P13"];
const overfull: readonly PromiseNumber[] = ["P7"];

/** @throws Error when the page has not both marks */
export function writeReport(page: string, tallies: readonly PartTally[]): void {
  const text = readFileSync(page, "utf8");
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from === -1 || to < from) throw new Error(`${page} lacks the marks ${BEGIN} and ${END}`);
  const before = text.slice(0, from + BEGIN.length);
  writeFileSync(page, `${before}\n\n${tablesOf(tallies)}\n\n${text.slice(to)}`);
}

/** What was found, how soon swarms came back, and, where it was sampled, memory. By part, then by server, oldest
 *  first. */
export function tablesOf(unsorted: readonly PartTally[]): string {
  const tallies = [...unsorted].sort(
    (a, b) =>
      a.part.localeCompare(b.part, "en") ||
      a.server.localeCompare(b.server, "en", { numeric: true }) ||
      a.leaderTimeoutMs - b.leaderTimeoutMs,
  );
  const sampled = tallies.filter(({ memory }) => memory.length > 0);
  const tables = [outcomeTable(tallies), recoveryTable(tallies)];
  return [...tables, ...(sampled.length === 0 ? [] : [memoryTable(sampled)])].join("\n\n");
}

/** One row a part, server and T. */
function outcomeTable(tallies: readonly PartTally[]): string {
  const rows = tallies.map((tally) => [
    ...nameOf(tally),
    tally.rounds,
    tally.accepted,
    tally.observations,
    count(tally, lost),
    count(tally, doubled),
    count(tally, contradicted),
    count(tally, overfull),
    tally.stuck,
    loadOf(tally),
  ]);
  const head = ["part", "server", "T", "rounds", "tasks accepted", "answers judged", "lost", "two outcomes"];
  return table([...head, "contradicted", "over capacity", "did not come back", "load"], rows);
}

/** One row a figure of a part. */
function recoveryTable(tallies: readonly PartTally[]): string {
  const rows = tallies.flatMap((tally) =>
    (Object.entries(tally.recoveries) as [Figure, number[]][]).map(([figure, times]) => [
      ...nameOf(tally),
      figure,
      times.length,
      seconds(quantile(times, 0.5)),
      seconds(Math.max(...times)),
    ]),
  );
  return table(["part", "server", "T", "from → to", "times", "p50", "max"], rows);
}

/** Of processes that lived throughout: after the warm-up, and at the end. */
function memoryTable(tallies: readonly PartTally[]): string {
  const rows = tallies.flatMap((tally) =>
    tally.memory.map(({ process, measure, before, after }) => [
      ...nameOf(tally),
      process,
      measure,
      mebibytes(before),
      mebibytes(after),
      `${((after / before - 1) * 100).toFixed(1)} %`,
    ]),
  );
  return table(
    ["part", "server", "T", "process", "memory", "MiB after the warm-up", "MiB at the end", "growth"],
    rows,
  );
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

function nameOf({ part, server, leaderTimeoutMs }: PartTally): readonly string[] {
  return [part, server, `${leaderTimeoutMs / 1_000} s`];
}

function count({ violationsByPromise }: PartTally, promises: readonly PromiseNumber[]): number {
  return promises.reduce((sum, promise) => sum + (violationsByPromise[promise] ?? 0), 0);
}

function loadOf({ load }: PartTally): string {
  if (load === undefined) return "?";
  const [min, max] = [load.min.toFixed(0), load.max.toFixed(0)];
  return min === max ? min : `${min} to ${max}`;
}

function seconds(ms: number): string {
  if (ms >= NEVER_MS) return "never";
  return Number.isFinite(ms) ? `${(ms / 1_000).toFixed(2)} s` : "";
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lineOf = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, place) => (place < 2 ? "---" : "--:"));
  return [lineOf(head), `|${rule.join("|")}|`, ...rows.map(lineOf)].join("\n");
}
