// A process whose heap V8 lets grow only a little collects its whole heap less often with the setting.

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

/** As after a pause, V8 lets the heap grow by at most 30 % between two collections of the whole heap. */
const GROWS_LITTLE = "--optimize-for-size";

/** Keeps some 15 MB, and makes some 100 MB of garbage that outlives young collections. Prints how often the whole heap
 *  was collected. */
const program = (first: string) => `
  import { PerformanceObserver, constants } from "node:perf_hooks";
  import { growHeapAfterPauses } from ${JSON.stringify(new URL("../src/heap-growth.ts", import.meta.url).href)};
  ${first}
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries())
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
  });
  observer.observe({ entryTypes: ["gc"] });
  const made = () => Array.from({ length: 1_000 }, (_, at) => ({ at, text: "x" + at }));
  const kept = Array.from({ length: 200 }, made);
  for (let at = 0; at < 1_500; at += 1) kept[at % 100] = made();
  setTimeout(() => console.log(collections + (kept.length === 200 ? 0 : 1)), 50);`;

function collectionsOf(first: string): number {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [GROWS_LITTLE, "--import", "tsx", "--input-type=module", "--eval", program(first)],
    { encoding: "utf8", timeout: 60_000 },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return Number(stdout);
}

describe("the heap", () => {
  it("is collected as a whole less often when it may grow further", () => {
    const before = collectionsOf("");
    expect(before).toBeGreaterThan(3);
    expect(collectionsOf("growHeapAfterPauses();")).toBeLessThanOrEqual(before / 2);
  });
});
