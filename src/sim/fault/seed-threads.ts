// Runs seeds on the cores of the machine. The result of a seed depends neither on the number of threads nor on earlier
// seeds.

import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { messageOf } from "../../errors.ts";
import type { NodeLog } from "./habitat.ts";
import { runSeed, type SeedReport, type SeedRequest } from "./run-seed.ts";

export interface SeedsOptions {
  /** Ends the runs early: they reject with the reason of the signal. */
  readonly signal: AbortSignal;
  /** At least 1; with 1, seeds run in the calling thread. */
  readonly threads: number;
  /** Receives logs only if seeds run in the calling thread. */
  readonly log?: NodeLog | undefined;
  /** Called with the report of every finished seed, in the order of their ends. */
  onDone(report: SeedReport): void;
}

/** Runs every seed of `requests`. @throws the reason of the signal, or the error of a thread, with its seed */
export async function runSeeds(requests: Iterable<SeedRequest>, options: SeedsOptions): Promise<void> {
  const queue = requests[Symbol.iterator]();
  const { threads, signal, log, onDone } = options;
  if (threads > 1) return await runOnThreads(queue, options);
  for (let next = queue.next(); next.done !== true; next = queue.next()) {
    signal.throwIfAborted();
    onDone(await runSeed(next.value, { signal, log }));
  }
}

async function runOnThreads(
  queue: Iterator<SeedRequest>,
  { threads: count, signal, onDone }: SeedsOptions,
): Promise<void> {
  const entry = createRequire(import.meta.url).resolve("waggledance/torture-thread");
  const threads = Array.from({ length: count }, () => new Worker(entry));
  const work = async (thread: Worker) => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) {
      thread.postMessage(next.value);
      onDone(await reportOf(thread, next.value, signal));
    }
  };
  try {
    await Promise.all(threads.map(work));
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}

/** Rejects when the thread fails, as without memory left, and names the seed. */
async function reportOf(thread: Worker, { seed }: SeedRequest, signal: AbortSignal): Promise<SeedReport> {
  try {
    const [report] = (await once(thread, "message", { signal })) as [SeedReport];
    return report;
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error(`seed ${seed}: ${messageOf(cause)}`, { cause });
  }
}
