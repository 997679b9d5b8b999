// The remaining time of a progress bar, from the work done so far.

import { expect, it } from "vitest";
import { leftText } from "../../src/cli/progress-bar.ts";

it.each([
  [0, 20, 4_000, ""],
  [1, 20, 4_000, ", 1m16s left"],
  [15, 20, 30_000, ", 10s left"],
  [20, 20, 30_000, ", 0s left"],
])("%d of %d after %d ms: '%s'", (count, total, elapsedMs, text) => {
  expect(leftText(count, total, elapsedMs)).toBe(text);
});
