// How far a simulation is, in runs.

import type { Output } from "../output.ts";
import { showProgress } from "../progress-bar.ts";

export interface RunProgress {
  done(): void;
  stop(): void;
}

export function showRuns(output: Output, name: string, total: number): RunProgress {
  const progress = showProgress(output, { name, unit: "runs" });
  let count = 0;
  progress.at(count, total);
  return {
    done: () => {
      count += 1;
      progress.at(count, total);
    },
    stop: () => progress.stop(),
  };
}
