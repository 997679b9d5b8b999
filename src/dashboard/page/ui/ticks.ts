// Round times for the axis of a drawing.

import { clockTime, exactTime } from "../format.ts";

const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

/** The smallest round step, ms, that makes at most so many ticks. */
export function roundStep(long: number, most: number): number {
  return steps.find((each) => long / each <= most) ?? long;
}

/** Multiples of a round step, and their text: times of day, with tenths or milliseconds where necessary. */
export function roundTimes(
  from: number,
  to: number,
  most: number,
): { readonly times: readonly number[]; readonly text: (at: number) => string } {
  const step = Math.max(1, roundStep(to - from, most));
  const times: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) times.push(at);
  const letters = step >= 1_000 ? 0 : step >= 100 ? 10 : 12;
  return { times, text: (at) => (letters === 0 ? clockTime(at) : exactTime(at).slice(0, letters)) };
}
