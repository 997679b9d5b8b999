// The budget of microseconds: flags of the profile, parts of a profile, and the table.

import { describe, expect, it } from "vitest";
import { type Budget, budgetConditions, budgetTable, partOf, partsOf } from "../../bench/harness/budget.ts";
import { profileUsage, readProfileFlags } from "../../bench/harness/profile-flags.ts";

describe("the flags of the profile", () => {
  it("default to 1,024 tasks in flight", () => {
    expect(readProfileFlags([])).toEqual({
      order: { op: "closed", concurrency: 1024, ms: 8_000 },
      what: "1,024 tasks in flight",
      agents: 2,
      lines: 25,
      report: false,
    });
  });

  it.each([
    [["--c", "1"], { op: "closed", concurrency: 1, ms: 8_000 }, "one task at a time"],
    [
      ["--rate", "2000", "--seconds", "3"],
      { op: "open", ratePerSecond: 2_000, ms: 3_000 },
      "open loop at 2,000 tasks/s",
    ],
    [["--burst", "20000"], { op: "burst", tasks: 20_000 }, "20,000 tasks at once"],
  ])("%j are an order", (argv, order, what) => {
    expect(readProfileFlags(argv)).toMatchObject({ order, what });
  });

  it("name the agents of a larger swarm", () => {
    expect(readProfileFlags(["--agents", "500"])).toMatchObject({
      agents: 500,
      what: "1,024 tasks in flight, 500 agents",
    });
  });

  it.each([
    [["--c", "many"], "--c is a number from 1 to 9999999, not 'many'"],
    [["--seconds", "0"], "--seconds is a number"],
    [["--agents", "3"], "--agents is an even number, not '3'"],
    [["--c", "1", "--rate", "5"], "--c, --rate and --burst exclude each other"],
    [["--beside", "x"], "Unknown option '--beside'"],
  ])("%j are refused in a sentence", (argv, sentence) => {
    expect(readProfileFlags(argv)).toEqual({ refused: expect.stringContaining(sentence) });
  });

  it("--help is the usage", () => {
    expect(readProfileFlags(["-h"])).toBe("help");
    expect(profileUsage).toContain("Examples:");
  });
});

describe("parts", () => {
  it.each([
    ["src/coordinator/leader/turn.js", "src/coordinator"],
    ["src/clock.js", "src"],
    ["zod/v4/core/parse.js", "zod"],
    ["@nats-io/nats-core/lib/parser.js", "@nats-io/nats-core"],
    ["node:internal/streams/writable", "Node"],
    ["bench/peers/dist/main.js", "benchmark"],
    ["/elsewhere/bench/peers/dist/waggle.js", "benchmark"],
    ["stringify", "JSON"],
    ["writev", "built-in functions"],
    ["(garbage collector)", "garbage collection"],
    ["(program)", "outside of JavaScript"],
  ])("%s belongs to %s", (what, part) => {
    expect(partOf(what)).toBe(part);
  });

  it("sum the files of all threads, per task, largest first", () => {
    const files = [
      { what: "zod/a.js", us: 10 },
      { what: "zod/b.js", us: 20 },
      { what: "stringify", us: 40 },
    ];
    const summary = { busyUs: 70, files, functions: [], inclusive: [] };
    expect(partsOf([summary, summary], 10)).toEqual([
      { name: "JSON", us: 8 },
      { name: "zod", us: 6 },
    ]);
  });
});

describe("the table", () => {
  const aBudget = (coordinator: Budget["parts"]["coordinator"]): Budget => ({
    version: "1.2.3",
    codeDate: "2026-11-26",
    commit: "abc",
    node: "v24.1.0",
    what: "1,024 tasks in flight",
    ratePerSecond: 9_000,
    usByRole: { server: 6, coordinator: 50, workers: 20, client: 10 },
    parts: { coordinator, workers: [], client: [] },
  });
  const before = aBudget([
    { name: "zod", us: 7 },
    { name: "pino", us: 0.2 },
  ]);
  const now = aBudget([
    { name: "JSON", us: 3 },
    { name: "zod", us: 1 },
    { name: "rxjs", us: 0.1 },
  ]);

  it("has each role and its parts, with small parts summed", () => {
    expect(budgetTable({ before, now }).rows.slice(0, 6)).toEqual([
      ["server", "all", "6.0", "6.0"],
      ["coordinator", "all", "50.0", "50.0"],
      ["coordinator", "zod", "7.0", "1.0"],
      ["coordinator", "JSON", "0.0", "3.0"],
      ["coordinator", "smaller parts", "0.2", "0.1"],
      ["workers", "all", "20.0", "20.0"],
    ]);
    expect(budgetTable({ before, now }).rows.at(-1)).toEqual(["all", "all", "86.0", "86.0"]);
  });

  it("without an earlier version has an empty column", () => {
    expect(budgetTable({ now }).rows[1]).toEqual(["coordinator", "all", "–", "50.0"]);
    expect(budgetTable({ now }).rows.at(-1)?.[2]).toBe("–");
    expect(budgetConditions({ now })).toContain("no earlier version was measured");
    expect(budgetConditions({ before, now })).toContain("Before: Waggle 1.2.3 of 2026-11-26 on Node 24.1.0");
  });
});
