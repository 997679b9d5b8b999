// Reduces a failing seed: leaves out faults and operations as long as the same check still fails. Delta debugging
// (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002, ddmin), deterministic because
// seeds are.

import type { Fault } from "./fault.ts";
import { planOf, runSeed, type SeedReport, type SeedRequest } from "./run-seed.ts";
import type { Operation } from "./workload.ts";

export interface Shrunk {
  readonly request: SeedRequest & {
    readonly schedule: readonly Fault[];
    readonly operations: readonly Operation[];
  };
  readonly report: SeedReport;
}

export interface ShrinkOptions {
  readonly signal: AbortSignal;
  /** Told of every attempt. */
  onTried(progress: { readonly faults: number; readonly operations: number; readonly tried: number }): void;
}

/** The smallest that was found; undefined when the seed does not fail. @throws the reason of the signal */
export async function shrink(request: SeedRequest, options: ShrinkOptions): Promise<Shrunk | undefined> {
  const first = await runSeed(request, options);
  const check = first.findings[0]?.check;
  if (check === undefined) return undefined;
  const { schedule, workload } = planOf(request);
  let best: Shrunk = { request: { ...request, schedule, operations: workload.operations }, report: first };
  let tried = 0;
  const stillFails = async (smaller: Shrunk["request"]): Promise<boolean> => {
    const report = await runSeed(smaller, options);
    tried += 1;
    const isSame = report.findings[0]?.check === check;
    if (isSame) best = { request: smaller, report };
    options.onTried({
      faults: best.request.schedule.length,
      operations: best.request.operations.length,
      tried,
    });
    return isSame;
  };
  for (let before = -1; before !== sizeOf(best.request); ) {
    before = sizeOf(best.request);
    await leaveOut(best.request.schedule, (left) => stillFails({ ...best.request, schedule: left }));
    await leaveOut(best.request.operations, (left) => stillFails({ ...best.request, operations: left }));
  }
  return best;
}

function sizeOf({ schedule, operations }: Shrunk["request"]): number {
  return schedule.length + operations.length;
}

/** Leaves out ever smaller parts; `isEnough` says whether the rest does. */
async function leaveOut<Item>(
  items: readonly Item[],
  isEnough: (left: readonly Item[]) => Promise<boolean>,
): Promise<void> {
  let left = items;
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < left.length; ) {
      const without = left.toSpliced(at, size);
      if (await isEnough(without)) left = without;
      else at += size;
    }
  }
}
