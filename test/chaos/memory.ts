// The memory of processes over a long run: what the machine has given them (resident), and what they have in use after
// a collection (processes/in-use-probe.mjs, once a minute). Compares the minutes after the warm-up with the last ones.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { quantile } from "./figures.ts";
import { monotonicMs } from "./monotonic.ts";

const SAMPLE_MS = 5_000;
/** A coordinator fills what it keeps, 5 min of records for one, and its heap settles; a run that is too short for that
 *  compares its second half. */
const WARM_UP_MS = 10 * 60_000;
const WINDOW_SHARE = 1 / 12;

export type MemoryMeasure = "resident" | "in use";

export interface MemoryRow {
  readonly process: string;
  readonly measure: MemoryMeasure;
  /** Median of the window after the warm-up and of the last one, bytes. */
  readonly before: number;
  readonly after: number;
}

/** A process that lives throughout. */
export interface Sampled {
  readonly name: string;
  readonly pid: number | undefined;
  /** Where its probe writes, if it has one. */
  readonly inUseFile?: string;
}

export interface Sample {
  /** Since the run began. */
  readonly ms: number;
  readonly bytes: number;
}

/** Of one process and one measure, in time's order. */
export interface Series {
  readonly process: string;
  readonly measure: MemoryMeasure;
  readonly samples: readonly Sample[];
}

/** Where the probe of a node writes, wherever that runs. */
export function inUseFileOf(folder: string, node: string): string {
  return resolve(folder, `${node}.in-use`);
}

export class MemorySampler {
  readonly #startedMs = monotonicMs();
  readonly #seriesByKey = new Map<string, { process: string; measure: MemoryMeasure; samples: Sample[] }>();
  readonly #timer: NodeJS.Timeout;
  /** Lines of each probe that were read. */
  readonly #linesByFile = new Map<string, number>();

  /** @param sampled asked at each sample: pids change when processes are started again */
  constructor(sampled: () => readonly Sampled[], everyMs = SAMPLE_MS) {
    this.#timer = setInterval(() => {
      for (const one of sampled()) this.#sample(one);
    }, everyMs);
  }

  stop(): MemoryRow[] {
    clearInterval(this.#timer);
    return memoryRowsOf([...this.#seriesByKey.values()], monotonicMs() - this.#startedMs);
  }

  #sample({ name, pid, inUseFile }: Sampled): void {
    if (pid === undefined) return;
    const resident = residentBytes(pid);
    if (resident !== undefined) this.#add(name, "resident", resident);
    if (inUseFile === undefined) return;
    const lines = linesOf(inUseFile);
    for (const line of lines.slice(this.#linesByFile.get(inUseFile) ?? 0)) {
      const [writer, bytes] = line.split(" ");
      if (Number(writer) === pid) this.#add(name, "in use", Number(bytes));
    }
    this.#linesByFile.set(inUseFile, lines.length);
  }

  #add(process: string, measure: MemoryMeasure, bytes: number): void {
    const key = `${process} ${measure}`;
    const series = this.#seriesByKey.get(key) ?? { process, measure, samples: [] };
    this.#seriesByKey.set(key, series);
    series.samples.push({ ms: monotonicMs() - this.#startedMs, bytes });
  }
}

/** @param wholeMs how long the run took. A series without a sample in both windows has no row */
export function memoryRowsOf(all: readonly Series[], wholeMs: number): MemoryRow[] {
  const from = Math.min(WARM_UP_MS, wholeMs / 2);
  const window = wholeMs * WINDOW_SHARE;
  return all
    .map(({ process, measure, samples }) => ({
      process,
      measure,
      before: medianWithin(samples, from, from + window),
      after: medianWithin(samples, wholeMs - window, wholeMs + SAMPLE_MS),
    }))
    .filter(({ before, after }) => Number.isFinite(before) && Number.isFinite(after))
    .sort((a, b) => a.process.localeCompare(b.process));
}

function medianWithin(samples: readonly Sample[], fromMs: number, toMs: number): number {
  const within = samples.filter(({ ms }) => ms >= fromMs && ms < toMs);
  return quantile(
    within.map(({ bytes }) => bytes),
    0.5,
  );
}

/** @returns undefined when there is no such process any more */
function residentBytes(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined; // it has just ended
  }
}

/** Whole lines; none before the first minute. */
function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}
