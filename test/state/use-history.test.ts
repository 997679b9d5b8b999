// A window from the history of use, against a list of all uses. The window counts all use of its length, and at most
// one bucket more.

import fc from "fast-check";
import { expect, it } from "vitest";
import { instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { totalAt } from "../../src/state/rolling-window.ts";
import { addUse, historyAmiss, type UseHistory, windowFrom } from "../../src/state/use-history.ts";

interface Use {
  readonly at: number;
  readonly tokens: number;
}

const began = 1_700_000_000_000;

function usedSince(uses: readonly Use[], from: number): number {
  return uses.filter(({ at }) => at > from).reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Pauses of all lengths, from none to an hour. */
const pause = fc.oneof(fc.nat(20), fc.nat(2_000), fc.nat(60_000), fc.nat(3_600_000));
const uses = fc
  .record({
    repeats: fc.integer({ min: 1, max: 20 }),
    steps: fc.array(fc.record({ pause, tokens: fc.nat(99) }), { maxLength: 60 }),
  })
  .map(({ repeats, steps }) => {
    let at = began;
    return Array.from({ length: repeats }, () => steps)
      .flat()
      .map(({ pause: passed, tokens }): Use => {
        at += passed;
        return { at, tokens };
      });
  });
const windowMs = fc.oneof(
  fc.integer({ min: limits.budgetWindowMsMin, max: 100_000 }),
  fc.integer({ min: limits.budgetWindowMsMin, max: 10_000_000 }),
);

it("counts all use of the window's length, and at most one bucket more", () => {
  fc.assert(
    fc.property(uses, windowMs, fc.nat(100_000), (recorded, length, later) => {
      const history: UseHistory = [];
      for (const { at, tokens } of recorded) addUse(history, tokens, instant(at));
      const at = instant((recorded.at(-1)?.at ?? began) + later);
      expect(historyAmiss(history, at)).toBeUndefined();
      const window = windowFrom(history, length, at);
      const bucketMs = Math.ceil(length / limits.windowBuckets);
      expect(totalAt(window, at)).toBeGreaterThanOrEqual(usedSince(recorded, at - length));
      expect(totalAt(window, at)).toBeLessThanOrEqual(usedSince(recorded, at - length - bucketMs));
      // Later the window drops use like a window kept all along, at most one bucket late.
      const end = instant(at + length / 2);
      expect(totalAt(window, end)).toBeGreaterThanOrEqual(usedSince(recorded, end - length));
      expect(totalAt(window, end)).toBeLessThanOrEqual(usedSince(recorded, end - length - 3 * bucketMs));
    }),
    { numRuns: 200 },
  );
});

it("stays bounded under constant use, and remembers a year", () => {
  const history: UseHistory = [];
  const stepMs = 250_000;
  const count = Math.floor(limits.budgetWindowMsMax / stepMs);
  for (let n = 0; n <= count; n += 1) addUse(history, 1, instant(began + n * stepMs));
  const at = instant(began + count * stepMs);
  expect(historyAmiss(history, at)).toBeUndefined();
  expect(history.flat().length).toBeLessThanOrEqual(
    2 * limits.historyLevelsMax * limits.historyStepsPerLevel,
  );
  expect(totalAt(windowFrom(history, limits.budgetWindowMsMax, at), at)).toBeGreaterThanOrEqual(count);
});
