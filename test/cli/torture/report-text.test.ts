// The report of a run: a failed seed makes the run red, and so does a state that a long run never reached.

import { describe, expect, it } from "vitest";
import { failureText, summaryOf, summaryText } from "../../../src/cli/torture/report-text.ts";
import { type Occurrence, occurrenceNames } from "../../../src/sim/fault/occurrences.ts";
import type { SeedReport } from "../../../src/sim/fault/run-seed.ts";
import type { Operation } from "../../../src/sim/fault/workload.ts";

const terms = { forMs: 120_000, without: [] };

function theReports(count: number, reached: readonly Occurrence[]): SeedReport[] {
  const occurrences = Object.fromEntries(reached.map((name) => [name, 1]));
  return Array.from({ length: count }, (_, seed) => ({
    ...{ seed, findings: [], trace: "", events: 1, batches: 1, tasks: 1, virtualMs: 1, realMs: 1, faults: 1 },
    occurrences,
  }));
}

const view = { colors: { red: String, green: String, bold: String } as never };

it("a failure shows its remaining faults and operations", () => {
  const [report] = theReports(1, []);
  const found = {
    ...(report as SeedReport),
    findings: [{ check: "ends", sentence: "t1 does not", atMs: 9 }],
  };
  const task = { id: "t1", kind: "count", payload: '{"does":"hang"}', tokens: 5 };
  const operations: readonly Operation[] = [
    { atMs: 300, client: "k1", does: "submit", tasks: [task, { id: "t2", kind: "embed", payload: "" }] },
    { atMs: 1_500, client: "k2", does: "set-project", project: "acme", patch: { budget: null } },
    { atMs: 2_000, client: "k2", does: "pause", project: undefined },
  ];
  const text = failureText(found, { schedule: [], operations, command: "again!", view });
  expect(text.split("\n").slice(1)).toEqual([
    "  ends: t1 does not",
    "  operations",
    '    at 0.300 s: k1 submit id=t1 kind=count payload={"does":"hang"} tokens=5, id=t2 kind=embed payload=',
    "    at 1.500 s: k2 set-project acme budget=null",
    "    at 2.000 s: k2 pause",
    "  again    again!",
  ]);
  const schedule = [{ kind: "pause", atMs: 1_000, forMs: 500, of: "c1" }] as const;
  expect(failureText(found, { schedule, command: "again!", view })).toMatch(
    / {2}faults\n.*pause c1\n {2}again/,
  );
});

describe("a long run", () => {
  it("is green if it reached every state", () => {
    expect(summaryOf(theReports(100, occurrenceNames), terms).neverReached).toEqual([]);
  });

  it("names the states never reached", () => {
    const reached = occurrenceNames.filter((name) => name !== "deposed" && name !== "tail-cut");
    const summary = summaryOf(theReports(100, reached), terms);
    expect(summary.neverReached).toEqual(["tail-cut", "deposed"]);
    expect(summaryText(summary, view)).toContain(
      "never reached, though a run of this length should: tail-cut, deposed",
    );
  });

  it("may miss only the states of a fault left out", () => {
    const without = ["gap"] as const;
    expect(summaryOf(theReports(100, []), { ...terms, without }).neverReached).toEqual(
      occurrenceNames.filter((name) => name !== "gap-made"),
    );
  });
});

it("a short run, or a run of short seeds, may miss every state", () => {
  expect(summaryOf(theReports(99, []), terms).neverReached).toEqual([]);
  expect(summaryOf(theReports(100, []), { ...terms, forMs: 30_000 }).neverReached).toEqual([]);
});
