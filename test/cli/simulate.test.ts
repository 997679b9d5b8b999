// `waggle simulate` as a user sees it: the list, tables, records, pictures, and errors.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { describe, expect, it } from "vitest";
import { drawPicture } from "../../src/cli/simulate/picture.ts";
import { reportText } from "../../src/cli/simulate/report-text.ts";
import type { Scenario } from "../../src/sim/policy/scenario.ts";
import { scenarioNamed, scenarios } from "../../src/sim/policy/scenarios.ts";
import { reportsOf, runOnce, runsOf } from "../../src/sim/policy/simulate.ts";
import { parseTrace } from "../../src/sim/policy/trace-file.ts";
import { aShell, runIn } from "./shell.ts";

const aFolder = () => mkdtempSync(join(tmpdir(), "waggle-simulate-"));
const simulate = (cwd: string, ...argv: readonly string[]) => runIn(aShell({ cwd }), "simulate", ...argv);
const records = (stdout: string) =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const aTrace = [
  "TIMESTAMP,ContextTokens,GeneratedTokens",
  ...Array.from(
    { length: 60 },
    (_, at) => `2023-11-16 18:15:${String(at).padStart(2, "0")}.5,${100 + at * 30},${at + 1}`,
  ),
].join("\n");

describe("the list", () => {
  it.each([[[]], [["list"]]])("is printed by %j: every scenario with all rules", async (argv) => {
    const { code, stdout } = await simulate(aFolder(), ...argv);
    expect(code).toBe(0);
    for (const { name, summary } of scenarios) expect(stdout).toContain(`${name}\n  ${summary}\n  rules: `);
  });

  it("has a record a scenario with --json", async () => {
    const { stdout } = await simulate(aFolder(), "list", "--json");
    expect(records(stdout).map(({ scenario }) => scenario)).toEqual(scenarios.map(({ name }) => name));
  });
});

describe("several scenarios", () => {
  it("run in sequence, each once", async () => {
    const { code, stdout } = await simulate(aFolder(), "lucio-1", "costly-users", "lucio-1", "--json");
    expect(code).toBe(0);
    expect(records(stdout).map(({ scenario }) => scenario)).toEqual(["lucio-1", "costly-users"]);
  });

  it("print a report each, with a blank line between them", async () => {
    const { stdout } = await simulate(aFolder(), "lucio-1", "costly-users");
    expect(stdout).toMatch(/^lucio-1 {2}[\s\S]*\n\ncostly-users {2}/);
  });
});

describe("a simulation", () => {
  it("prints an object a rule with --json, the same each time", async () => {
    const argv = ["loco-overload", "--compare", "loco,fifo", "--alpha", "0.5", "--seeds", "3..5", "--json"];
    const [first, again] = [await simulate(aFolder(), ...argv), await simulate(aFolder(), ...argv)];
    expect(first.stdout).toBe(again.stdout);
    expect(records(first.stdout)).toEqual(
      ["loco", "fifo"].map((rules) => ({
        scenario: "loco-overload",
        rules,
        alpha: rules === "loco" ? 0.5 : null,
        seeds: [3, 4, 5],
        metrics: expect.objectContaining({
          jain: { mean: expect.any(Number), ci95: expect.any(Number) },
          served: { mean: 500, ci95: expect.any(Number) },
        }),
      })),
    );
  });

  it("marks figures that a single seed cannot give, and unmeasured figures", async () => {
    const drawn = await simulate(aFolder(), "loco-spike", "--seeds", "1", "--json");
    expect(records(drawn.stdout)).toMatchObject([{ alpha: null, metrics: { spike: { ci95: null } } }]);
    const certain = await simulate(aFolder(), "lucio-1", "--json");
    expect(records(certain.stdout)).toMatchObject([{ metrics: { total: { mean: 15, ci95: 0 } } }]);
    const scenario = scenarioNamed("skew16") as Scenario;
    const run = {
      scenario: "skew16",
      rule: "random",
      alpha: 0.25,
      seed: 0,
      wantsTimeline: false,
      share: 0.001,
    };
    const reports = reportsOf([run], [runOnce(run)]);
    expect(reports).toMatchObject([{ metrics: { p99At25: { ci95: null }, p99At70: null } }]);
    const view = { columns: 80, colors: pc.createColors(false) };
    expect(reportText(scenario, reports, view)).toMatch(/^p99At70 +not measured$/m);
  });

  it("prints a table for people, with what each figure and rule means", async () => {
    const { code, stdout, stderr } = await simulate(aFolder(), "lucio-1", "--compare", "lucio,fifo");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^figure +lucio +fifo\n/m);
    expect(stdout).toMatch(/^deterministic: one run$/m);
    expect(stdout).toMatch(/^total +15 +15$/m);
    expect(stdout).toContain("first in, first out over all users");
    expect(stdout).toContain("time at which the last task of all ended");
  });

  it("runs ours when no rule is named, and every rule for `all`", async () => {
    const one = await simulate(aFolder(), "vapora-examples", "--rules", "vapora", "--json");
    expect(records(one.stdout).map(({ rules }) => rules)).toEqual(["vapora"]);
    const ours = await simulate(aFolder(), "loco-burst", "--seeds", "1", "--json");
    expect(records(ours.stdout).map(({ rules }) => rules)).toEqual(["waggle"]);
    const all = await simulate(aFolder(), "lucio-2", "--compare", "all", "--json");
    expect(records(all.stdout).length).toBe(
      Object.keys(scenarios.find(({ name }) => name === "lucio-2")?.rules ?? {}).length,
    );
  });

  it("refuses a trace that is not UTF-8, by file and line", async () => {
    const folder = aFolder();
    writeFileSync(join(folder, "trace.csv"), Buffer.from(`${aTrace}\n2023-11-16 18:16:00.5,1,2é`, "latin1"));
    const { code, stdout, stderr } = await simulate(folder, "trace", "trace.csv");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("trace.csv:62: not UTF-8");
  });

  it("replays a trace", async () => {
    const folder = aFolder();
    writeFileSync(join(folder, "trace.csv"), aTrace);
    const { code, stdout } = await simulate(
      folder,
      "trace",
      "trace.csv",
      "--compare",
      "all",
      "--seeds",
      "2",
      "--json",
    );
    expect(code).toBe(0);
    expect(records(stdout).map(({ rules, seeds }) => [rules, seeds])).toEqual([
      ["waggle", [0, 1]],
      ["loco", [0, 1]],
      ["lucio", [0, 1]],
      ["budget", [0, 1]],
      ["vapora", [0, 1]],
      ["fifo", [0, 1]],
      ["round-robin", [0, 1]],
    ]);
  });

  it.each([
    [
      "users and time",
      ["lucio-1", "--compare", "lucio,fifo"],
      ["light-10", "share of the service over time", "fifo: how long they waited"],
    ],
    ["figures", ["herd", "--rules", "four-deciders", "--seeds", "1"], ["four-deciders", "p99"]],
  ])("is drawn as %s", async (_, argv, texts) => {
    const folder = aFolder();
    const { code, stderr } = await simulate(folder, ...argv, "--svg", "out.svg");
    expect([code, stderr]).toEqual([0, expect.stringContaining("drawn: out.svg")]);
    const svg = readFileSync(join(folder, "out.svg"), "utf8");
    expect(svg).toMatch(/^<svg .*<\/svg>$/s);
    for (const text of texts) expect(svg).toContain(text);
  });
});

/** Of two rules on two seeds, or fewer, of a small part of the scenario. */
async function aPicture(scenario: Scenario, rules = Object.keys(scenario.rules).slice(0, 2), seeds = [0, 1]) {
  const runs = runsOf({ scenario, rules, alpha: 0.25, seeds, wantsTimelines: true });
  const trace = scenario.needsTrace === true ? parseTrace(aTrace) : undefined;
  const results = runs.map((run) => runOnce({ ...run, share: 0.02 }, trace));
  const timelines = new Map(
    runs.flatMap(({ rule }, at) => {
      const timeline = results[at]?.timeline;
      return timeline === undefined ? [] : [[rule, timeline] as const];
    }),
  );
  const svg = await drawPicture(scenario, reportsOf(runs, results), timelines);
  const labelsOf = (part: string) =>
    [...svg.matchAll(new RegExp(`aria-roledescription="${part}" aria-label="([^"]*)"`, "g"))].map(
      ([, label]) => label ?? "",
    );
  return { svg, labelsOf, panels: timelines.size > 0 ? 3 * timelines.size : figuresOf(scenario).length };
}

const figuresOf = ({ charted }: Scenario) => Object.keys(charted ?? {});

describe("a picture", () => {
  it.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
    "of %s labels each panel, and each axis with the unit",
    async (_, scenario) => {
      const { svg, labelsOf, panels } = await aPicture(scenario);
      expect(panels).toBeGreaterThan(0);
      expect(labelsOf("axis").length).toBe(2 * panels);
      for (const label of labelsOf("axis")) expect(label).toMatch(/^[XY]-axis titled '[^']{4,}' for /);
      for (const part of ["title", "subtitle"]) {
        expect(labelsOf(part).length).toBe(panels + 1);
        for (const label of labelsOf(part)) expect(label).toMatch(/text '.{4,}'$/);
      }
      expect(labelsOf("legend").length).toBe(1);
      expect(svg).toMatch(/<line [^>]*[xy]2="-?\d{2,}[^>]*stroke="#e4e4e4"/);
    },
  );

  it.each(scenarios.flatMap((scenario) => figuresOf(scenario).map((name) => [scenario.name, name] as const)))(
    "of %s shows a figure of the report: %s",
    (scenario, name) => {
      expect(Object.keys(scenarioNamed(scenario)?.metrics ?? {})).toContain(name);
    },
  );

  it("has exactly the shown series in the legend", async () => {
    const scenario = scenarioNamed("herd") as Scenario;
    const words = ["waggle (mean)", "another rule (mean)", "95 % confidence interval"];
    const shown = async (...of: Parameters<typeof aPicture>) => {
      const { svg } = await aPicture(...of);
      return words.filter((word) => svg.includes(`>${word}<`));
    };
    expect(await shown(scenario)).toEqual(words);
    expect(await shown(scenario, ["waggle"], [0])).toEqual(["waggle (mean)"]);
    expect(await shown(scenario, ["four-deciders"])).toEqual(words.slice(1));
  });

  it.each([
    [
      "loco-burst",
      ["waggle", "loco", "loco-starvation-limit"],
      [3, 4, 5],
      "seed 3 of 3–5; α 0.25 for loco, loco-starvation-limit",
    ],
    ["loco-burst", ["waggle"], [3], "seed 3 alone"],
    ["lucio-1", ["waggle", "loco"], [0, 1], "deterministic: every seed gives the same; α 0.25 for loco"],
    ["herd", ["waggle"], [0, 1, 2], "mean over 3 seeds (0–2), 95 % confidence interval"],
    ["vapora-examples", undefined, [0, 1], "deterministic: every seed gives the same"],
  ])("of %s under %o on seeds %o says so", async (name, rules, seeds, sentence) => {
    const { svg } = await aPicture(scenarioNamed(name) as Scenario, rules, seeds);
    expect(svg).toContain(`>${sentence}<`);
  });

  it("marks an unmeasured rule", async () => {
    const { svg } = await aPicture(scenarioNamed("skew16") as Scenario, ["waggle", "random"]);
    expect(svg.match(/>not measured</g)?.length).toBe(1);
  });

  it("is no wider than a screen, however many rules it compares", async () => {
    const scenario = scenarioNamed("loco-burst") as Scenario;
    const sizeOf = async (count: number) => {
      const { svg } = await aPicture(scenario, Object.keys(scenario.rules).slice(0, count), [0]);
      const [, width, height] = /width="([\d.]+)" height="([\d.]+)"/.exec(svg) ?? [];
      return { width: Number(width), height: Number(height) };
    };
    const [few, many] = [await sizeOf(4), await sizeOf(9)];
    expect(few.width).toBeGreaterThan(few.height);
    expect(many.width).toBeLessThan(few.width);
    expect(many.height).toBeGreaterThan(9 * 300);
  });

  it("fills the whole of the time it shows", async () => {
    const { svg } = await aPicture(scenarioNamed("loco-burst") as Scenario, ["fifo"]);
    expect(svg).toMatch(/<path [^>]*d="M0,\d+L8,\d+[^"]*L320,/);
  });
});

describe("a request that makes no sense", () => {
  it.each([
    ["an unknown scenario", ["loco-brust"], "did you mean loco-burst?"],
    ["a name like none", ["xyz"], "waggle simulate list"],
    ["an unknown rule", ["lucio-1", "--rules", "lucoi"], "or lucio?"],
    ["a rule the scenario has not", ["lucio-1", "--compare", "waggle,two-choices"], "it has waggle, loco"],
    ["one rule and several", ["lucio-1", "--rules", "fifo", "--compare", "fifo,lucio"], "give either flag"],
    ["an α above 1", ["lucio-1", "--alpha", "1.1"], "a number from 0 to 1"],
    ["an α that is none", ["lucio-1", "--alpha", "half"], "a number from 0 to 1"],
    [
      "an α that the rule does not read",
      ["lucio-1", "--alpha", "0.5"],
      "waggle does not read α; leave it out",
    ],
    ["an α that no rule reads", ["herd", "--compare", "all", "--alpha", "0.5"], "no rule of herd does"],
    ["no seeds", ["lucio-1", "--seeds", "0"], "a number of seeds (20)"],
    ["seeds that are none", ["lucio-1", "--seeds", "a..b"], "a number of seeds (20)"],
    ["seeds from high to low", ["lucio-1", "--seeds", "9..3"], "from low to high"],
    ["too many seeds", ["lucio-1", "--seeds", "0..10000"], "must be at most 10000 seeds"],
    ["far too many seeds", ["lucio-1", "--seeds", "9".repeat(20)], "must be at most 10000 seeds"],
    [
      "a seed too high",
      ["lucio-1", "--seeds", "999999999..1000000001"],
      "must end at seed 1000000000 or lower",
    ],
    ["a trace without a file", ["trace"], "trace replays a file"],
    ["a trace that is not there", ["trace", "none.csv"], "none.csv"],
    ["a picture in no folder", ["lucio-1", "--svg", "none/out.svg"], "cannot write none/out.svg"],
    ["a picture that is a folder", ["lucio-1", "--svg", "."], "this is a folder"],
    ["a file where none is read", ["lucio-1", "trace.csv"], "no scenario is called 'trace.csv'"],
    ["a second scenario that is none", ["lucio-1", "joinr"], "did you mean joiner?"],
    ["a trace beside others", ["lucio-1", "trace"], "trace runs alone"],
    ["two traces", ["trace", "a.csv", "b.csv"], "trace reads one file"],
    [
      "a picture of two scenarios",
      ["lucio-1", "lucio-2", "--svg", "out.svg"],
      "--svg draws a single scenario",
    ],
    ["a rule that the second has not", ["lucio-1", "joiner", "--rules", "fifo"], "joiner has no rule 'fifo'"],
  ])("(%s) is refused, and says what would do", async (_, argv, sentence) => {
    const { code, stdout, stderr } = await simulate(aFolder(), ...argv);
    expect(stderr).toContain(sentence);
    expect(stderr).toMatch(/^error WAGGLE_\w+: [^\n]+\n$/);
    expect([code, stdout]).toEqual([2, ""]);
  });

  it("(a trace with a broken line) names the line", async () => {
    const folder = aFolder();
    writeFileSync(join(folder, "trace.csv"), aTrace.replace("18:15:07.5,310", "18:15:07.5,many"));
    const { code, stderr } = await simulate(folder, "trace", "trace.csv");
    expect(stderr).toMatch(
      /^error WAGGLE_INVALID_VALUE: line 9 of the trace: ContextTokens .* not 'many'\n$/,
    );
    expect(code).toBe(2);
  });
});
