// What was found so far, part by part and server by server: kept in a file, so that a part may be stopped and gone on
// with, and the report be written from all of them.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { PromiseNumber } from "../../src/sim/history/violation.ts";
import type { Figure } from "./figures.ts";
import type { LegResult } from "./leg.ts";
import type { MemoryRow } from "./memory.ts";

/** JSON has no infinity: an hour stands for never. */
export const NEVER_MS = 3_600_000;

export interface PartTally {
  readonly part: string;
  /** Version of the nats-server. */
  readonly server: string;
  readonly leaderTimeoutMs: number;
  rounds: number;
  legs: number;
  accepted: number;
  batches: number;
  observations: number;
  stuck: number;
  violationsByPromise: Partial<Record<PromiseNumber, number>>;
  /** ms. */
  recoveries: Partial<Record<Figure, number[]>>;
  /** Of the last leg that sampled it. */
  memory: readonly MemoryRow[];
  /** Load average of the machine, lowest and highest of a leg; absent before the first. */
  load?: { readonly min: number; readonly max: number };
}

type PartKey = Pick<PartTally, "part" | "server" | "leaderTimeoutMs">;

export class Tally {
  readonly #file: string;
  readonly #parts: PartTally[];

  constructor(file: string) {
    this.#file = file;
    this.#parts = read(file);
  }

  get all(): readonly PartTally[] {
    return this.#parts;
  }

  /** That of one part on one server; begun where there is none. */
  of(key: PartKey): PartTally {
    const found = this.#parts.find((tally) => keyOf(tally) === keyOf(key));
    if (found !== undefined) return found;
    const counts = { rounds: 0, legs: 0, accepted: 0, batches: 0, observations: 0, stuck: 0 };
    const begun: PartTally = { ...key, ...counts, violationsByPromise: {}, recoveries: {}, memory: [] };
    this.#parts.push(begun);
    return begun;
  }

  forget(tally: PartTally): void {
    this.#parts.splice(this.#parts.indexOf(tally), 1);
    this.#save(tally);
  }

  add(tally: PartTally, leg: LegResult): void {
    tally.rounds += leg.rounds;
    tally.legs += 1;
    tally.accepted += leg.accepted;
    tally.batches += leg.batches;
    tally.observations += leg.observations;
    tally.stuck += leg.stuck === undefined ? 0 : 1;
    for (const { promise } of leg.violations)
      tally.violationsByPromise[promise] = (tally.violationsByPromise[promise] ?? 0) + 1;
    for (const [figure, times] of Object.entries(leg.recoveries) as [Figure, number[]][])
      tally.recoveries[figure] = [...(tally.recoveries[figure] ?? []), ...times.map(finite)];
    if (leg.memory.length > 0) tally.memory = leg.memory;
    const { min, max } = tally.load ?? { min: leg.load, max: leg.load };
    tally.load = { min: Math.min(min, leg.load), max: Math.max(max, leg.load) };
    this.#save(tally);
  }

  /** Of what others have saved meanwhile nothing is lost but what is of the same part. */
  #save(changed: PartTally): void {
    const others = read(this.#file).filter((tally) => keyOf(tally) !== keyOf(changed));
    const own = this.#parts.filter((tally) => tally === changed);
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(`${this.#file}.new`, JSON.stringify([...others, ...own], undefined, 1));
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function keyOf({ part, server, leaderTimeoutMs }: PartKey): string {
  return `${part} ${server} ${leaderTimeoutMs}`;
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? Math.round(ms) : NEVER_MS;
}

function read(file: string): PartTally[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as PartTally[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
