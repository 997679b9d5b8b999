// How a run is read: rounds that count, ratios, requirements, tables, charts, and the measured part of the page.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { mainCases, sustainedPlaces } from "../../bench/harness/cases.ts";
import { barChart } from "../../bench/harness/charts.ts";
import {
  chartsOf,
  isOfGrowth,
  lossesOf,
  unfitForPage,
  withPart,
  writeReport,
} from "../../bench/harness/page.ts";
import { Figures } from "../../bench/harness/record.ts";
import { isMet, latencyOverPath, requirementsOf } from "../../bench/harness/required.ts";
import { mainSystems } from "../../bench/harness/systems.ts";
import { asMarkdown, asText, conditionsOf, tablesOf } from "../../bench/harness/tables.ts";
import { aFigure, aRun } from "./run-fixture.ts";

describe("rounds under foreign load", () => {
  const figures = new Figures({
    figures: [
      aFigure({ system: "waggle", round: 1, ratePerSecond: 100 }),
      aFigure({ system: "waggle", round: 2, ratePerSecond: 10, foreign: 0.1 }),
      aFigure({ system: "bare", round: 1, ratePerSecond: 200, foreign: 1 }),
      aFigure({ system: "bare", round: 2, ratePerSecond: 20, foreign: 1 }),
    ],
  });

  it("do not count beside calm rounds", () => {
    expect(figures.spread("c1024", "waggle", "ratePerSecond")).toEqual({
      median: 100,
      least: 100,
      most: 100,
    });
    expect(figures.calmRounds("c1024", "waggle")).toEqual({ calm: 1, all: 2 });
  });

  it("count when all rounds are so", () => {
    expect(figures.spread("c1024", "bare", "ratePerSecond")?.median).toBe(110);
  });

  it("leave the ratios of rounds that count for both", () => {
    expect(figures.ratio("c1024", "waggle", "bare")).toEqual({ median: 0.5, least: 0.5, most: 0.5 });
  });
});

it("a failed window is no figure", () => {
  const figures = new Figures({ figures: [{ case: "c1", system: "bullmq", round: 1, error: "hung" }] });
  expect(figures.spread("c1", "bullmq", "p50")).toBeUndefined();
  const failed = tablesOf(aRun({ figures: [{ case: "c1", system: "bullmq", round: 1, error: "hung" }] }));
  expect(failed[0]?.rows).toEqual([["BullMQ on Redis", "failed"]]);
});

describe("requirements", () => {
  it("are ratios within a run", () => {
    const found = requirementsOf(new Figures(aRun()), 24).find(({ what }) =>
      what.includes("request/reply at"),
    );
    expect(found?.value?.median).toBeCloseTo(0.65);
    expect(found && isMet(found)).toBe(false);
  });

  it("of the CPU time of a task depend on the version of Node", () => {
    const figures = new Figures(aRun());
    const [newer, older] = [24, 20].map((major) => requirementsOf(figures, major)[0]);
    expect([newer?.value?.median, newer?.bound, older?.bound]).toEqual([60, { atMost: 40 }, { atMost: 50 }]);
  });

  it("divide the latency of a task by the physical path", () => {
    const one = (system: string, p50: number) => aFigure({ case: "c1", system, round: 1, p50 });
    const run = aRun({ figures: [one("append", 0.2), one("bare", 0.1), one("waggle", 0.9)] });
    const found = requirementsOf(new Figures(run), 24).find(({ what }) => what.startsWith("C = 1:"));
    expect(found?.value?.median).toBeCloseTo(1.5);
  });

  it("compare the latency of one task within rounds", () => {
    const one = (system: string, round: number, p50: number) => aFigure({ case: "c1", system, round, p50 });
    const slow = [one("append", 1, 2), one("bare", 1, 1), one("waggle", 1, 12)];
    const fast = [one("append", 2, 0.2), one("bare", 2, 0.1), one("waggle", 2, 0.6)];
    const lonely = [one("waggle", 3, 99)];
    const run = aRun({ figures: [...slow, ...fast, ...lonely] });
    expect(latencyOverPath(new Figures(run))?.most).toBeCloseTo(2);
    expect(latencyOverPath(new Figures({ figures: lonely }))).toBeUndefined();
  });

  it("compare rounds of a long run that are no pairs by their medians", () => {
    const at = (system: string, round: number, ratePerSecond: number) =>
      aFigure({ case: "sustained", system, round, ratePerSecond });
    const figures = [
      at(sustainedPlaces.first, 1, 100),
      at(sustainedPlaces.before, 5, 1_000),
      at(sustainedPlaces.past, 9, 900),
    ];
    const found = requirementsOf(new Figures({ figures }), 24).find(({ what }) => what.startsWith("10⁶"));
    expect(found?.value?.median).toBeCloseTo(0.9);
  });

  it("without figures are neither met nor missed", () => {
    expect(requirementsOf(new Figures({ figures: [] }), 20).map(isMet)).not.toContain(true);
    expect(requirementsOf(new Figures({ figures: [] }), 20).map(isMet)).not.toContain(false);
  });
});

it("short windows decide nothing about requirements", () => {
  const titlesOf = (quick: boolean) => tablesOf(aRun({ quick })).map(({ title }) => title);
  expect(titlesOf(false)).toContain("required");
  expect(titlesOf(true)).not.toContain("required");
});

describe("tables", () => {
  const [bulk] = tablesOf(aRun());

  it("have a row per system, with spread, ratio, CPU time and load", () => {
    const [bare, ours] = bulk?.rows ?? [];
    expect(bare?.slice(0, 3)).toEqual(["NATS request/reply", "1,500 (1,000–2,000)", "0.65 (0.50–0.80)"]);
    expect(ours).toContain("60.0");
    expect(ours?.at(-1)).toBe("2 of 2");
  });

  it("of an open loop have the reached rate beside the wanted rate", () => {
    const slow = { round: 1, wantedPerSecond: 2_000, ratePerSecond: 820 };
    for (const name of ["open", "open2k", "followers"]) {
      const figures = [aFigure({ case: name, system: "waggle", ...slow })];
      const [table] = tablesOf(aRun({ figures }));
      expect(table?.head.slice(1, 3)).toEqual(["rate/s", "reached/s"]);
      expect(table?.rows[0]?.slice(1, 3)).toEqual(["2,000", "820"]);
    }
  });

  it("have the role of followers where a system has some", () => {
    const without = aFigure({ case: "followers", system: "0 followers", round: 1 });
    const within = { ...without, system: "10 followers", usByRole: { client: 30, followers: 70 } };
    const [table] = tablesOf(aRun({ figures: [without, within] }));
    const at = table?.head.indexOf("followers µs") ?? -1;
    expect(table?.rows.map((row) => row.slice(at - 1, at + 2))).toEqual([
      ["30.0", "–", "60.0"],
      ["30.0", "70.0", "100.0"],
    ]);
    expect(bulk?.head).not.toContain("followers µs");
  });

  it("are text with aligned columns, or Markdown with a cell per column", () => {
    const table = { title: "t", head: ["system", "n"], rows: [["a", "10"], ["long name"]] };
    expect(asText(table).split("\n")).toEqual([
      "t",
      "system      n",
      "---------  --",
      "a          10",
      "long name",
    ]);
    expect(asMarkdown(table).split("\n")).toEqual([
      "| system | n |",
      "|---|--:|",
      "| a | 10 |",
      "| long name |  |",
    ]);
  });

  it("come with the machine, the servers and the share of windows under foreign load", () => {
    const said = conditionsOf(aRun());
    expect(said).toContain(
      "Waggle 1.2.3 of 2026-11-26 on Node 24.1.0; nats-server 2.10.1. 2 cores (A Processor), 8 GiB",
    );
    expect(said).toContain("load average 0.5 before and 1.5 after");
    expect(said).toContain("In 0 of 4 windows other programs used 0.1 core or more.");
  });
});

describe("charts", () => {
  it("have a bar per system, as long as its value", () => {
    const bars = [
      { label: "a & b", value: 100 },
      { label: "ours", value: 50, spread: [40, 60] as const, isOurs: true },
    ];
    const svg = barChart({ title: "T", unit: "u", bars, format: String });
    const widths = [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
    expect(widths[1]).toBe((widths[0] ?? 0) / 2);
    expect(svg).toContain("a &amp; b");
    expect(svg).toContain("<path"); // the spread
  });

  it("stack the parts of a bar, and name them once", () => {
    const parts = [
      { name: "server", value: 10 },
      { name: "client", value: 30 },
    ];
    const svg = barChart({ title: "T", unit: "u", bars: [{ label: "x", value: 40, parts }], format: String });
    expect(svg.match(/>server</g)).toHaveLength(1);
    expect(svg.match(/<rect/g)).toHaveLength(4);
  });

  it("are drawn of the measured cases only", () => {
    expect([...chartsOf(aRun()).keys()]).toEqual(["performance-throughput", "performance-cpu"]);
  });
});

describe("the page", () => {
  it("gets the measured part between its marks, and keeps its own words", () => {
    const page =
      "before\n<!-- measured: npm run bench -- --report writes from here -->\nold\n<!-- measured: to here -->\nafter\n";
    const written = withPart(page, "measured", "new");
    expect(written).toContain("\n\nnew\n\n");
    expect(written).not.toContain("old");
    expect(written).toMatch(/^before\n.*after\n$/s);
    expect(withPart(written, "measured", "new")).toBe(written);
  });

  it("shows the requirements before the losses and the tables of the cases", () => {
    const root = mkdtempSync(join(tmpdir(), "waggle-page-"));
    const page = join(root, "docs", "performance.md");
    mkdirSync(dirname(page));
    writeFileSync(
      page,
      "<!-- measured: npm run bench -- --report writes from here -->\n<!-- measured: to here -->\n",
    );
    expect(writeReport(aRun(), root)).toContain("docs/results/performance-cpu.svg");
    const headings = readFileSync(page, "utf8").match(/^### .*$/gm);
    expect(headings).toEqual(["### Conditions", "### Required", "### Losses", "### 1,024 tasks in flight"]);
    rmSync(root, { recursive: true });
  });

  it("has a part of its own for cases of growth alone", () => {
    const ofCases = (...cases: readonly string[]) =>
      isOfGrowth(aRun({ figures: cases.map((name) => aFigure({ case: name, system: "waggle", round: 1 })) }));
    expect(ofCases("agents", "idle")).toBe(true);
    expect(ofCases("agents", "c1024")).toBe(false);
    expect(ofCases(), "all systems were left out").toBe(false);
  });

  it("takes whole runs with full windows only", () => {
    const whole = aRun({
      figures: mainCases.flatMap((name) =>
        mainSystems.map((system) => aFigure({ case: name, system, round: 1 })),
      ),
    });
    expect(unfitForPage(whole)).toBeUndefined();
    expect(unfitForPage({ ...whole, quick: true })).toBe("has short windows");
    expect(unfitForPage({ ...whole, figures: [] })).toBe("measured nothing");
    const without = whole.figures.filter(({ case: name }) => name !== "burst");
    expect(unfitForPage({ ...whole, figures: without })).toBe("lacks burst");
    const part = whole.figures.filter(({ system }) => system !== "bullmq");
    expect(unfitForPage({ ...whole, figures: part })).toBe("lacks bullmq");
    const growth = aRun({ figures: [aFigure({ case: "idle", system: "100 agents", round: 1 })] });
    expect(unfitForPage(growth)).toBeUndefined();
  });

  it("without marks is refused", () => {
    expect(() => withPart("nothing", "budget", "new")).toThrow("lacks the marks <!-- budget:");
  });

  it("lists the systems that were faster", () => {
    expect(lossesOf(aRun())).toContain("| tasks/s | c1024 | NATS request/reply | 0.65 (0.50–0.80) |");
    expect(lossesOf(aRun())).not.toContain("| CPU time |");
    const costly = aRun({
      figures: [
        aFigure({ system: "bare", round: 1, usByRole: { client: 10 } }),
        aFigure({ system: "waggle", round: 1 }),
      ],
    });
    expect(lossesOf(costly)).toContain("| CPU time | c1024 | NATS request/reply | 6.00 (6.00–6.00) |");
    const won = aRun({ figures: [aFigure({ system: "waggle", round: 1 })] });
    expect(lossesOf(won)).toContain("In no measured case");
  });
});
