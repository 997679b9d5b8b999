// How far something long is: a bar on a terminal, a line now and then anywhere else; nothing for what is short.

import { Presets, SingleBar } from "cli-progress";
import { limits } from "../limits.ts";
import type { Output } from "./output.ts";

export interface Progress {
  /** So many are done, of so many; the total may change. */
  at(count: number, total: number): void;
  stop(): void;
}

/** @param what.name stands before the bar · @param what.unit is counted, in the plural */
export function showProgress(
  output: Output,
  { name, unit }: { readonly name: string; readonly unit: string },
): Progress {
  const bar = new SingleBar(
    {
      format: `${name} {bar} {value}/{total} ${unit}, {eta_formatted} left`,
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
    },
    Presets.shades_classic,
  );
  let count = 0;
  let total = 0;
  let shown = -1;
  const timer = setInterval(
    () => {
      if (output.isNoteTerminal) {
        if (!bar.isActive) bar.start(total, count);
        return;
      }
      if (count !== shown) output.note(`${name}: ${count} of ${total} ${unit}`);
      shown = count;
    },
    output.isNoteTerminal ? limits.progressQuietMs : limits.progressLineMs,
  );
  return {
    at: (nextCount, nextTotal) => {
      count = nextCount;
      total = nextTotal;
      if (bar.isActive) bar.update(count);
    },
    stop: () => {
      clearInterval(timer);
      if (bar.isActive) bar.stop();
    },
  };
}
