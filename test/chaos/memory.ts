// Memory of processes over a long run: resident memory, and memory in use after a collection
// (processes/in-use-probe.mjs, once per minute). Compares the minutes after the warm-up with the last minutes.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { quantile } from "./figures.ts";
import { monotonicMs } from "./monotonic.ts";

const SAMPLE_MS = 5_000;
/** Time for a coordinator to fill its buffers, for example 5 min of records, and for its heap to settle. A
 *  shorter run compares its second half. */
const WARM_UP_MS = 10 * 60_000;
const WINDOW_SHARE = 1 / 12;

export type MemoryMeasure = "resident" | "in use";

export interface MemoryRow {
  readonly process: string;
  readonly measure: MemoryMeasure;
  /** Medians of the window after the warm-up and of the last window, bytes. */
  readonly before: number;
  readonly after: number;
}

/** A process that lives throughout. */
export interface Sampled {
  readonly name: string;
  readonly pid: number | undefined;
  /** Output file of the process's probe, if any. */
  readonly inUseFile?: string;
}

export interface Sample {
  /** Time since the run began. */
  readonly ms: number;
  readonly bytes: number;
}

/** A series of one process and one measure, in order of time. */
export interface Series {
  readonly process: string;
  readonly measure: MemoryMeasure;
  readonly samples: readonly Sample[];
}

/** Output file of a node's probe. */
export function inUseFileOf(folder: string, node: string): string {
  return resolve(folder, `${node}.in-use`);
}

export class MemorySampler {
  readonly #startedMs = monotonicMs();
  readonly #seriesByKey = new Map<string, { process: string; measure: MemoryMeasure; samples: Sample[] }>();
  readonly #timer: NodeJS.Timeout;
  /** Number of lines read from each probe. */
  readonly #linesByFile = new Map<string, number>();

  /** @param sampled called at each sample, because pids change when processes restart */
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

/** @param wholeMs duration of the run. A series without a sample in both windows has no row */
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

/** @returns undefined when the process has ended */
function residentBytes(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined; // has just ended
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
