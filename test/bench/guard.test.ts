// The guard of CI: flags, and the verdict on invented figures.

import { describe, expect, it } from "vitest";
import { guardBounds, guardUsage, judge, readGuardFlags } from "../../bench/harness/guard.ts";
import { Figures } from "../../bench/harness/record.ts";
import { aFigure } from "./run-fixture.ts";

const { throughput, latency } = guardBounds;

describe("the flags", () => {
  it("default to the shared bounds", () => {
    expect(readGuardFlags([])).toEqual({
      requireThroughput: throughput.required,
      requireLatency: latency.required,
      rounds: 5,
      json: false,
    });
  });

  it("are read", () => {
    const asked = ["--require-throughput", "1", "--require-latency", "2.5", "--rounds", "9", "--json"];
    const flags = { requireThroughput: 1, requireLatency: 2.5, rounds: 9, json: true };
    expect(readGuardFlags(asked)).toEqual(flags);
  });

  it.each([
    [["--require-throughput", "much"], "--require-throughput is a ratio such as 0.4, not 'much'"],
    [["--require-latency", "-1"], "Option '--require-latency' argument is ambiguous"],
    [["--rounds", "0"], "--rounds is a number from 1 to 99"],
    [["--require", "0.6"], "Unknown option '--require'"],
  ])("%j are refused in a sentence", (argv, sentence) => {
    expect(readGuardFlags(argv)).toEqual({ refused: expect.stringContaining(sentence) });
  });

  it("--help is the usage, with the goals as an example", () => {
    expect(readGuardFlags(["--help"])).toBe("help");
    expect(guardUsage).toContain(
      `--require-throughput ${throughput.wanted} --require-latency ${latency.wanted}`,
    );
  });
});

describe("the verdict", () => {
  const flags = { requireThroughput: 0.5, requireLatency: 4 };
  const at = (ratePerSecond: number, p50: number) =>
    new Figures({
      figures: [
        aFigure({ system: "bare", round: 1, ratePerSecond: 1_000 }),
        aFigure({ system: "waggle", round: 1, ratePerSecond }),
        aFigure({ case: "c1", system: "append", round: 1, p50: 0.2 }),
        aFigure({ case: "c1", system: "bare", round: 1, p50: 0.3 }),
        aFigure({ case: "c1", system: "waggle", round: 1, p50 }),
      ],
    });

  it.each([
    ["both ratios at their bounds", 500, 4, [true, true]],
    ["too few tasks", 499, 4, [false, true]],
    ["too slow a task", 500, 4.1, [true, false]],
  ])("of %s", (_, rate, p50, met) => {
    expect(judge(at(rate, p50), flags).map(({ isMet }) => isMet)).toEqual(met);
  });

  it("names the ratio, its bound and the goal", () => {
    expect(judge(at(499, 3), flags).map(({ sentence }) => sentence)).toEqual([
      `C = 1024: tasks/s ÷ request/reply: 0.50 (0.50–0.50), required ≥ 0.5, wanted ≥ ${throughput.wanted}  NOT MET`,
      `C = 1: p50 ÷ (2 appends + 2 round trips): 3.00 (3.00–3.00), required ≤ 4, wanted ≤ ${latency.wanted}`,
    ]);
  });

  it("is bad when a window failed", () => {
    const failed = new Figures({ figures: [{ case: "c1024", system: "waggle", round: 1, error: "hung" }] });
    expect(judge(failed, flags).map(({ isMet }) => isMet)).toEqual([false, false]);
  });
});
