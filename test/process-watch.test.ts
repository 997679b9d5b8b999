// The event loop's lag and the memory of this process.

import { setTimeout as pause } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { limits } from "../src/limits.ts";
import { ProcessWatch } from "../src/process-watch.ts";

const BLOCK_MS = 400;
const ends: (() => void)[] = [];
/** Windows end by hand. */
const clock = {
  after: (_ms: number, run: () => void) => {
    ends.push(run);
    return () => undefined;
  },
};
const endWindow = () => ends.pop()?.();
let watch: ProcessWatch;
afterEach(() => watch.stop());

it("shows a blocked event loop until the end of the next window", async () => {
  watch = new ProcessWatch(clock);
  await pause(3 * limits.loopLagSampleMs);
  const untilMs = performance.now() + BLOCK_MS;
  while (performance.now() < untilMs);
  await pause(3 * limits.loopLagSampleMs);
  const lagOf = () => watch.figures.loopLagMaxMs;
  // The block may begin right before a sample is due, or right after one.
  const least = BLOCK_MS - 2 * limits.loopLagSampleMs;
  expect(lagOf()).toBeGreaterThan(least);
  endWindow();
  expect(lagOf()).toBeGreaterThan(least);
  endWindow();
  expect(lagOf()).toBeLessThan(least);
});

it("shows memory in bytes, the heap as a part of it", () => {
  watch = new ProcessWatch(clock);
  const { rssBytes, heapUsedBytes, heapTotalBytes, windowMs } = watch.figures;
  expect(windowMs).toBe(limits.loopLagWindowMs);
  expect(heapUsedBytes).toBeGreaterThan(1e6);
  expect(heapTotalBytes).toBeGreaterThanOrEqual(heapUsedBytes);
  expect(rssBytes).toBeGreaterThan(heapUsedBytes);
});
