// How far something long is: a bar on a terminal, a line now and then anywhere else; nothing for what is short.

import { Presets, SingleBar } from "cli-progress";
import { limits } from "../limits.ts";
import type { Output } from "./output.ts";

export interface Progress {
  /** So many are done, of so many; the total may change. */
  at(count: number, total: number): void;
  stop(): void;
}

/** @param what.name text before the bar · @param what.unit unit of the count, in the plural */
/** Remaining time at the same pace; empty before the first item is done. */
export function leftText(count: number, total: number, elapsedMs: number): string {
  if (count === 0) return "";
  const seconds = Math.ceil(((elapsedMs / count) * (total - count)) / 1_000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `, ${seconds}s left` : `, ${minutes}m${seconds % 60}s left`;
}

export function showProgress(
  output: Output,
  { name, unit }: { readonly name: string; readonly unit: string },
): Progress {
  const bar = new SingleBar(
    {
      format: `${name} {bar} {value}/{total} ${unit}{left}`,
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
    },
    Presets.shades_classic,
  );
  const startedAt = performance.now();
  const left = () => ({ left: leftText(count, total, performance.now() - startedAt) });
  let count = 0;
  let total = 0;
  let shown = -1;
  const timer = setInterval(
    () => {
      if (output.isNoteTerminal) {
        if (!bar.isActive) bar.start(total, count, left());
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
      if (bar.isActive) bar.update(count, left());
    },
    stop: () => {
      clearInterval(timer);
      if (bar.isActive) bar.stop();
    },
  };
}
