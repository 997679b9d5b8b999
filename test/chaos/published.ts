// The published figures, docs/results/chaos.json: one row per part, server and T, summed over the legs on the
// newest code. The tables of docs/reliability.md come from this file alone; report.ts formats them.

import { readFileSync, writeFileSync } from "node:fs";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import { type Figure, quantile } from "./figures.ts";
import type { MemoryMeasure, MemoryRow } from "./memory.ts";
import { requiredMsOf } from "./required.ts";
import { type PartKey, recoveriesIn, type TalliedLeg } from "./tally.ts";

const MIB = 1024 * 1024;

export interface PublishedRow extends PartKey {
  /** The code that ran. */
  readonly commit: string;
  /** First and last day, `2026-11-22`. */
  readonly from: string;
  readonly to: string;
  readonly rounds: number;
  readonly accepted: number;
  readonly observations: number;
  readonly segmentChanges: number;
  /** One task in this many was recorded and judged. */
  readonly recordsEvery: number;
  /** Legs without a recovery of the swarm. */
  readonly stuck: number;
  readonly violationsByPromise: Partial<Record<PromiseNumber, number>>;
  /** Load average of the machine at the end of legs, lowest and highest. */
  readonly load: { readonly min: number; readonly max: number };
  readonly recoveries: readonly RecoveryRow[];
  /** From the last leg with samples. */
  readonly memory: readonly PublishedMemory[];
}

export interface RecoveryRow {
  readonly figure: Figure;
  readonly times: number;
  /** Number of times above the bound, if any. */
  readonly over?: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
}

interface PublishedMemory {
  readonly process: string;
  readonly measure: MemoryMeasure;
  readonly beforeMib: number;
  readonly afterMib: number;
  readonly growthPercent: number;
}

/** Sums by part, server and T over the legs with the same code as the last leg. */
export function rowsOf(legs: readonly TalliedLeg[]): PublishedRow[] {
  return groupsBy(legs, keyOf).map((ofKey) => {
    const newest = ofKey.at(-1)?.commit;
    return rowOf(ofKey.filter(({ commit }) => commit === newest));
  });
}

function rowOf(legs: readonly TalliedLeg[]): PublishedRow {
  const [first, last] = [legs[0], legs.at(-1)];
  if (first === undefined || last === undefined) throw new Error("a row is of a leg at least");
  const { part, server, leaderTimeoutMs, commit, recordsEvery } = first;
  const loads = legs.map(({ load }) => load);
  return {
    part,
    server,
    leaderTimeoutMs,
    commit,
    from: first.endedOn,
    to: last.endedOn,
    rounds: sum(legs, ({ rounds }) => rounds),
    accepted: sum(legs, ({ accepted }) => accepted),
    observations: sum(legs, ({ observations }) => observations),
    segmentChanges: sum(legs, ({ segmentChanges }) => segmentChanges),
    recordsEvery,
    stuck: legs.filter(({ isStuck }) => isStuck).length,
    violationsByPromise: violationsIn(legs),
    load: { min: Math.min(...loads), max: Math.max(...loads) },
    recoveries: recoveryRows(legs, leaderTimeoutMs),
    memory: (legs.findLast(({ memory }) => memory.length > 0)?.memory ?? []).map(published),
  };
}

/** In the order of each group's first item. */
export function groupsBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups.values()];
}

/** Replaces the rows of the same part, server and T, and keeps the rest.
 *  @returns all published rows, and the number of replaced rows */
export function publish(file: string, rows: readonly PublishedRow[]) {
  const before = readPublished(file);
  const keys = new Set(rows.map(keyOf));
  const all = sorted([...before.filter((row) => !keys.has(keyOf(row))), ...rows]);
  writeFileSync(file, `${JSON.stringify(all, undefined, 2)}\n`);
  return { all, replaced: before.length + rows.length - all.length };
}

export function readPublished(file: string): PublishedRow[] {
  return JSON.parse(readFileSync(file, "utf8")) as PublishedRow[];
}

/** By part, then T, then server, the oldest server first. */
export function sorted(rows: readonly PublishedRow[]): PublishedRow[] {
  return [...rows].sort(
    (a, b) =>
      a.part.localeCompare(b.part, "en") ||
      a.leaderTimeoutMs - b.leaderTimeoutMs ||
      a.server.localeCompare(b.server, "en", { numeric: true }),
  );
}

function keyOf({ part, server, leaderTimeoutMs }: PartKey): string {
  return `${part} ${server} ${leaderTimeoutMs}`;
}

function recoveryRows(legs: readonly TalliedLeg[], leaderTimeoutMs: number): RecoveryRow[] {
  return (Object.entries(recoveriesIn(legs)) as [Figure, number[]][])
    .filter(([, times]) => times.length > 0)
    .map(([figure, times]) => {
      const requiredMs = requiredMsOf(figure, leaderTimeoutMs);
      return {
        figure,
        times: times.length,
        ...(requiredMs === undefined ? {} : { over: times.filter((ms) => ms > requiredMs).length }),
        p50Ms: quantile(times, 0.5),
        p95Ms: quantile(times, 0.95),
        maxMs: Math.max(...times),
      };
    });
}

function violationsIn(legs: readonly TalliedLeg[]): PublishedRow["violationsByPromise"] {
  const all: PublishedRow["violationsByPromise"] = {};
  for (const { violationsByPromise } of legs)
    for (const [promise, count] of Object.entries(violationsByPromise) as [PromiseNumber, number][])
      all[promise] = (all[promise] ?? 0) + count;
  return all;
}

function published({ process, measure, before, after }: MemoryRow): PublishedMemory {
  const mib = (bytes: number) => toTenth(bytes / MIB);
  const growthPercent = toTenth((after / before - 1) * 100);
  return { process, measure, beforeMib: mib(before), afterMib: mib(after), growthPercent };
}

function toTenth(value: number): number {
  return Math.round(value * 10) / 10;
}

function sum(legs: readonly TalliedLeg[], of: (leg: TalliedLeg) => number): number {
  return legs.reduce((all, leg) => all + of(leg), 0);
}
