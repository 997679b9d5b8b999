// A run as a whole: it is red when a seed failed, and when a long one never met what its faults bring about.

import { describe, expect, it } from "vitest";
import { summaryOf, summaryText } from "../../../src/cli/torture/report-text.ts";
import { type Occurrence, occurrenceNames } from "../../../src/sim/fault/occurrences.ts";
import type { SeedReport } from "../../../src/sim/fault/run-seed.ts";

const terms = { forMs: 120_000, without: [] };

function theReports(count: number, reached: readonly Occurrence[]): SeedReport[] {
  const occurrences = Object.fromEntries(reached.map((name) => [name, 1]));
  return Array.from({ length: count }, (_, seed) => ({
    ...{ seed, findings: [], trace: "", events: 1, batches: 1, tasks: 1, virtualMs: 1, realMs: 1, faults: 1 },
    occurrences,
  }));
}

describe("a long run", () => {
  it("that met everything is green", () => {
    expect(summaryOf(theReports(100, occurrenceNames), terms).neverReached).toEqual([]);
  });

  it("is told what it never met", () => {
    const reached = occurrenceNames.filter((name) => name !== "deposed" && name !== "tail-cut");
    const summary = summaryOf(theReports(100, reached), terms);
    expect(summary.neverReached).toEqual(["tail-cut", "deposed"]);
    expect(
      summaryText(summary, {
        colors: { red: (text: string) => text, green: (text: string) => text } as never,
      }),
    ).toContain("never reached, though so many seeds should: tail-cut, deposed");
  });

  it("need not meet what only a fault that is left out brings about, and all the rest", () => {
    const without = ["tail-cut"] as const;
    expect(summaryOf(theReports(100, []), { ...terms, without }).neverReached).toEqual(
      occurrenceNames.filter((name) => name !== "tail-cut" && name !== "tail-refilled"),
    );
  });
});

it("a short run, or one of short seeds, need not meet anything", () => {
  expect(summaryOf(theReports(99, []), terms).neverReached).toEqual([]);
  expect(summaryOf(theReports(100, []), { ...terms, forMs: 30_000 }).neverReached).toEqual([]);
});
