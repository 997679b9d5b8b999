// Flags of `npm run bench`, the orders of cases, and the plan of a run.

import { describe, expect, it } from "vitest";
import {
  type CaseName,
  caseNames,
  fullWindows,
  growthCases,
  limitMsOf,
  type MainCase,
  mainCases,
  orderOf,
  planOf,
  rampOf,
} from "../../bench/harness/cases.ts";
import { readFlags, usage } from "../../bench/harness/flags.ts";

describe("the flags", () => {
  it("default to the main cases, five rounds, and one form of Waggle", () => {
    expect(readFlags([])).toMatchObject({
      cases: mainCases,
      only: ["append", "inbox", "bare", "moleculer", "js-queue", "bullmq", "graphile", "rabbitmq", "waggle"],
      rounds: 5,
    });
    expect(readFlags([])).not.toHaveProperty("calmSeconds");
  });

  it("are read; growth stands for its cases", () => {
    const asked = ["--cases", "c1,growth,idle", "--only", "bare,waggle", "--quick", "--beside", "../before"];
    expect(readFlags(asked)).toMatchObject({
      cases: ["c1", ...growthCases],
      only: ["bare", "waggle"],
      rounds: 3,
      quick: true,
      beside: ["../before"],
    });
  });

  it.each([
    [["--cases", "c2048"], "no case is called 'c2048'; there are c1024, c64"],
    [["--only", "sidekiq"], "no system is called 'sidekiq'; there are append, inbox"],
    [["--cases", ","], "--cases names no case"],
    [["--only", ""], "--only names no system"],
    [["--rounds", "0"], "--rounds is a number from 1 to 99"],
    [["--calm", "soon"], "--calm is a number of seconds"],
    [["--roundz", "3"], "Unknown option '--roundz'"],
    [["bare"], "Unexpected argument"],
  ])("%j are refused in a sentence", (argv, sentence) => {
    expect(readFlags(argv)).toEqual({ refused: expect.stringContaining(sentence) });
  });

  it("--help is the usage, with examples", () => {
    expect(readFlags(["--help"])).toBe("help");
    expect(usage).toContain("Examples:");
  });
});

describe("orders", () => {
  it("of an open loop take half of the system's own maximum, once it is known", () => {
    const asked = { ms: fullWindows, system: "bare" };
    expect(orderOf("open", { ...asked, maxPerSecond: 9_001 })).toMatchObject({ ratePerSecond: 4_501 });
    expect(orderOf("open", asked)).toBeUndefined();
  });

  it("give a lone writer one task at a time only", () => {
    const asked = { ms: fullWindows, system: "append", maxPerSecond: 1 };
    expect(mainCases.filter((name) => orderOf(name, asked) !== undefined)).toEqual(["c1"]);
  });
});

describe("the ramp before a window", () => {
  const rampFor = (name: MainCase) =>
    rampOf(name, orderOf(name, { ms: fullWindows, system: "waggle", maxPerSecond: 9_001 }), fullWindows);

  it("has the load of the window", () => {
    const { rampMs } = fullWindows;
    expect(rampFor("c64")).toEqual({ op: "closed", concurrency: 64, ms: rampMs.c64 });
    expect(rampFor("open2k")).toEqual({ op: "open", ratePerSecond: 2_000, ms: rampMs.open2k });
    expect(rampFor("burst")).toEqual({ op: "closed", concurrency: 1024, ms: rampMs.burst });
  });

  it("is left out where a system has no such case", () => {
    expect(rampOf("c64", undefined, fullWindows)).toBeUndefined();
  });
});

describe("the plan of a run", () => {
  const all = ["append", ...Array.from({ length: 8 }, () => "bare")];
  const secondsOf = (cases: readonly (typeof caseNames)[number][], quick = false) =>
    planOf({ cases, systems: all, rounds: quick ? 3 : 5, quick }).reduce(
      (sum, { seconds }) => sum + seconds,
      0,
    );

  it("of the main cases leaves time for waits within 30 minutes, and so does the plan of growth", () => {
    expect(secondsOf(mainCases)).toBeLessThan(25 * 60);
    expect(secondsOf(growthCases)).toBeLessThan(25 * 60);
    const limitOf = (cases: readonly CaseName[]) =>
      limitMsOf(planOf({ cases, systems: all, rounds: 5, quick: false }));
    expect(limitOf(mainCases)).toBe(30 * 60_000);
    expect(limitOf(growthCases)).toBeLessThanOrEqual(30 * 60_000);
  });

  it("is shorter for short windows", () => {
    expect(secondsOf(caseNames, true)).toBeLessThan(secondsOf(caseNames) * 0.6);
  });

  it("has the steps in the order of the run, and what the open loop needs", () => {
    const plan = planOf({ cases: ["idle", "open"], systems: ["bare"], rounds: 1, quick: true });
    expect(plan.map(({ name }) => name)).toEqual(["start", "warm-up", "c1024", "open", "idle"]);
  });
});
