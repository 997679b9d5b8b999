// The legs judged so far, kept in a file, so that a part can stop, continue and be published.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import type { Figure, Recoveries } from "./figures.ts";
import type { LegResult } from "./leg.ts";
import type { MemoryRow } from "./memory.ts";

/** JSON has no infinity: an hour replaces infinity. */
export const NEVER_MS = 3_600_000;

export interface PartKey {
  readonly part: string;
  /** Version of the nats-server. */
  readonly server: string;
  readonly leaderTimeoutMs: number;
}

export interface TalliedLeg extends PartKey {
  /** The tested code, from `codeUnderTest`. */
  readonly commit: string;
  /** `2026-11-22`, UTC. */
  readonly endedOn: string;
  readonly rounds: number;
  readonly accepted: number;
  readonly observations: number;
  readonly segmentChanges: number;
  /** One task in this many was recorded. */
  readonly recordsEvery: number;
  readonly isStuck: boolean;
  readonly violationsByPromise: Partial<Record<PromiseNumber, number>>;
  /** ms; `NEVER_MS` for never. */
  readonly recoveries: Recoveries;
  /** Empty in parts without samples. */
  readonly memory: readonly MemoryRow[];
  readonly load: number;
}

export class Tally {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** In the order in which they ended. */
  get all(): readonly TalliedLeg[] {
    return read(this.#file);
  }

  /** Legs of one part on one server. */
  of(key: PartKey): readonly TalliedLeg[] {
    return this.all.filter((leg) => isOf(leg, key));
  }

  forget(key: PartKey): void {
    this.#save(this.all.filter((leg) => !isOf(leg, key)));
  }

  /** Appends after legs that concurrent runs have added. */
  add(key: PartKey, leg: LegResult, on: Pick<TalliedLeg, "commit" | "endedOn">): void {
    const { rounds, accepted, observations, segmentChanges, recordsEvery } = leg;
    const { memory, load, stuck, violations } = leg;
    const violationsByPromise: TalliedLeg["violationsByPromise"] = {};
    for (const { promise } of violations)
      violationsByPromise[promise] = (violationsByPromise[promise] ?? 0) + 1;
    const recoveries: Recoveries = {};
    for (const [figure, times] of Object.entries(leg.recoveries) as [Figure, number[]][])
      recoveries[figure] = times.map(finite);
    const counts = { rounds, accepted, observations, segmentChanges, recordsEvery };
    const isStuck = stuck !== undefined;
    this.#save([
      ...this.all,
      { ...key, ...on, ...counts, isStuck, violationsByPromise, recoveries, memory, load },
    ]);
  }

  #save(legs: readonly TalliedLeg[]): void {
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(`${this.#file}.new`, JSON.stringify(legs, undefined, 1));
    renameSync(`${this.#file}.new`, this.#file);
  }
}

/** Of all legs together. */
export function recoveriesIn(legs: readonly TalliedLeg[]): Recoveries {
  const all: Recoveries = {};
  for (const { recoveries } of legs)
    for (const [figure, times] of Object.entries(recoveries) as [Figure, number[]][])
      all[figure] = [...(all[figure] ?? []), ...times];
  return all;
}

function isOf(leg: PartKey, { part, server, leaderTimeoutMs }: PartKey): boolean {
  return leg.part === part && leg.server === server && leg.leaderTimeoutMs === leaderTimeoutMs;
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? Math.round(ms) : NEVER_MS;
}

function read(file: string): TalliedLeg[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as TalliedLeg[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
