// Seeds over the cores of this machine. What comes out of a seed does not depend on how many threads there are, nor on
// what ran before it.

import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { NodeLog } from "./habitat.ts";
import { runSeed, type SeedReport, type SeedRequest } from "./run-seed.ts";

export interface SeedsOptions {
  /** Ends the runs early, which then reject with its reason. */
  readonly signal: AbortSignal;
  /** At least 1; with one, seeds run in this thread. */
  readonly threads: number;
  /** Heard only where seeds run in this thread. */
  readonly log?: NodeLog | undefined;
  /** Told of every seed that is done, in the order in which they are. */
  onDone(report: SeedReport): void;
}

/** Runs every seed that `requests` gives. @throws what aborted the signal, or what a thread threw */
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
      // `once` rejects when the thread fails.
      const [report] = (await once(thread, "message", { signal })) as [SeedReport];
      onDone(report);
    }
  };
  try {
    await Promise.all(threads.map(work));
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
