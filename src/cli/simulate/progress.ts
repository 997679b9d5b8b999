// How far a simulation is: a bar on a terminal, a line now and then anywhere else; nothing for a short one.

import { Presets, SingleBar } from "cli-progress";
import { limits } from "../../limits.ts";
import type { Output } from "../output.ts";

export interface RunProgress {
  done(): void;
  stop(): void;
}

export function showRuns(output: Output, name: string, total: number): RunProgress {
  const bar = new SingleBar(
    {
      format: `${name} {bar} {value}/{total} runs, {eta_formatted} left`,
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
    },
    Presets.shades_classic,
  );
  let count = 0;
  let shown = -1;
  const timer = setInterval(
    () => {
      if (output.isNoteTerminal) {
        if (!bar.isActive) bar.start(total, count);
        return;
      }
      if (count !== shown) output.note(`${name}: ${count} of ${total} runs`);
      shown = count;
    },
    output.isNoteTerminal ? limits.simulationQuietMs : limits.progressLineMs,
  );
  return {
    done: () => {
      count += 1;
      if (bar.isActive) bar.update(count);
    },
    stop: () => {
      clearInterval(timer);
      if (bar.isActive) bar.stop();
    },
  };
}
