// Performs many simulations, on threads where worthwhile. Results do not depend on the number of threads: a run
// draws from its own seed only.

import { once } from "node:events";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { RunResult } from "./scenario.ts";
import { type RunRequest, runOnce } from "./simulate.ts";
import type { TraceRequest } from "./trace-rows.ts";

export interface ThreadsOptions {
  /** Ends the runs early. */
  readonly signal: AbortSignal;
  /** Approximate number of tasks per run: decides whether threads are worthwhile. */
  readonly tasksPerRun: number;
  readonly trace?: readonly TraceRequest[];
  /** Called after each run. */
  onDone(): void;
}

/** Starting a thread costs about as much as this many simulated tasks. */
const TASKS_PER_THREAD = 100_000;

/** Results in the order of the runs. @throws the reason of the signal, or the error of a run */
export async function runAll(runs: readonly RunRequest[], options: ThreadsOptions): Promise<RunResult[]> {
  const worth = Math.floor((runs.length * options.tasksPerRun) / TASKS_PER_THREAD);
  const threads = Math.min(availableParallelism(), runs.length, worth);
  return threads < 2 ? await runHere(runs, options) : await runOnThreads(runs, threads, options);
}

async function runHere(runs: readonly RunRequest[], options: ThreadsOptions): Promise<RunResult[]> {
  const results: RunResult[] = [];
  for (const run of runs) {
    options.signal.throwIfAborted();
    results.push(runOnce(run, options.trace));
    options.onDone();
    // Gives the terminal time to draw, and to pass on Ctrl-C.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return results;
}

async function runOnThreads(
  runs: readonly RunRequest[],
  count: number,
  { trace, signal, onDone }: ThreadsOptions,
): Promise<RunResult[]> {
  const entry = createRequire(import.meta.url).resolve("waggledance/simulation-thread");
  const threads = Array.from({ length: count }, () => new Worker(entry, { workerData: { trace } }));
  const results: RunResult[] = [];
  let next = 0;
  const work = async (thread: Worker) => {
    for (let at = next; at < runs.length; at = next) {
      next += 1;
      thread.postMessage(runs[at]);
      // `once` rejects when the thread fails.
      const [result] = (await once(thread, "message", { signal })) as [RunResult];
      results[at] = result;
      onDone();
    }
  };
  try {
    await Promise.all(threads.map(work));
    return results;
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
