// The growth case `base`: the part of a window in which a base was written.

import { expect, it } from "vitest";
import { shareOf } from "../../bench/harness/growth.ts";

it.each([
  ["no base", [], 0],
  [
    "a base before and a base after",
    [
      [0, 50],
      [250, 300],
    ],
    0,
  ],
  ["a base over the whole window", [[50, 300]], 1],
  [
    "a base that begins before, and another within",
    [
      [50, 120],
      [150, 170],
    ],
    0.4,
  ],
])("%s", (_, bases, share) => {
  const intervals = bases.map(([fromMs = 0, toMs = 0]) => ({ fromMs, toMs }));
  expect(shareOf({ fromMs: 100, toMs: 200 }, intervals)).toBeCloseTo(share);
});
