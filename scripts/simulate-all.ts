// `npm run simulate:all`: runs every scenario under every rule on all seeds, checks each requirement, and writes
// docs/results.md with pictures. Ends with 1 if a requirement does not hold.
//   npm run simulate:all -- --seeds 5 --out /elsewhere     a quicker look, written elsewhere
//   npm run simulate:all -- --trace requests.csv           a trace besides; default ../shared/data, if present

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drawPicture } from "../src/cli/simulate/picture.ts";
import { holds, meansOf, requirements } from "../src/sim/policy/requirements.ts";
import { scenarios } from "../src/sim/policy/scenarios.ts";
import { runAll } from "../src/sim/policy/seed-threads.ts";
import { type RuleReport, type RunRequest, reportsOf, runsOf } from "../src/sim/policy/simulate.ts";
import { parseTrace } from "../src/sim/policy/trace-file.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { pictured } from "./results/notes.ts";
import { resultsPage } from "./results/page.ts";

const TRACE = "../shared/data/azure-llm-conv-2023.csv";
const ALPHA = 0.25;

const USAGE = `npm run simulate:all -- [--seeds N] [--out FOLDER] [--trace FILE] [--only SCENARIO]…

  --seeds  seeds of each scenario, from 0 on (default 20)
  --out    folder of results.md and its pictures (default docs)
  --trace  requests of a real service, as CSV (default ${TRACE}, if present)
  --only   only this scenario; repeatable: ${scenarios.map(({ name }) => name).join(", ")}

Exits 1 if a requirement does not hold.`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      seeds: { type: "string", default: "20" },
      out: { type: "string", default: "docs" },
      trace: { type: "string" },
      only: { type: "string", multiple: true },
      help: { type: "boolean", default: false },
    },
  }),
);
const seeds = Array.from({ length: Number(values.seeds) }, (_, seed) => seed);
const traceFile = values.trace ?? (existsSync(TRACE) ? TRACE : undefined);
const trace = traceFile === undefined ? undefined : parseTrace(await readFile(traceFile, "utf8"));
const folder = join(values.out, "results");
await mkdir(folder, { recursive: true });

/** Runs for requirements, beside the runs at the default α. */
function extraRuns(scenario: string): RunRequest[] {
  const wanted = requirements.flatMap(({ runs }) => runs);
  const others = wanted.filter((run) => run.scenario === scenario && (run.alpha ?? ALPHA) !== ALPHA);
  const keys = new Set(others.map(({ rule, alpha = ALPHA }) => `${rule} ${alpha}`));
  return [...keys].flatMap((key) => {
    const [rule = "", alpha] = key.split(" ");
    return seeds.map((seed) => ({ scenario, rule, alpha: Number(alpha), seed, wantsTimeline: false }));
  });
}

const reports: RuleReport[] = [];
for (const scenario of scenarios) {
  if (scenario.needsTrace === true && trace === undefined) continue;
  if (values.only !== undefined && !values.only.includes(scenario.name)) continue;
  const startedAt = performance.now();
  const rules = Object.keys(scenario.rules);
  const runs = runsOf({ scenario, rules, alpha: ALPHA, seeds, wantsTimelines: true });
  const extra = extraRuns(scenario.name);
  const results = await runAll([...runs, ...extra], {
    signal: new AbortController().signal,
    tasksPerRun: scenario.tasks,
    ...(scenario.needsTrace === true && trace !== undefined ? { trace } : {}),
    onDone: () => undefined,
  });
  const ofScenario = reportsOf(runs, results.slice(0, runs.length));
  reports.push(...ofScenario);
  for (const alpha of new Set(extra.map((run) => run.alpha))) {
    const places = extra.flatMap((run, at) => (run.alpha === alpha ? [at] : []));
    const ofAlpha = places.map((at) => extra[at] as RunRequest);
    reports.push(
      ...reportsOf(
        ofAlpha,
        places.map((at) => results[runs.length + at] ?? { metrics: {} }),
      ),
    );
  }
  const shown = new Set(pictured[scenario.name] ?? rules);
  const timelines = new Map(
    runs.flatMap((run, at) => {
      const timeline = results[at]?.timeline;
      return timeline === undefined || !shown.has(run.rule) ? [] : [[run.rule, timeline] as const];
    }),
  );
  const svg = await drawPicture(
    scenario,
    ofScenario.filter(({ rule }) => shown.has(rule)),
    timelines,
  );
  await writeFile(join(folder, `${scenario.name}.svg`), svg);
  console.log(`${scenario.name.padEnd(18)} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

const meanOf = meansOf(reports);
const isRun = (scenario: string) => reports.some((report) => report.scenario === scenario);
const checked = requirements
  .filter(({ runs }) => runs.every(({ scenario }) => isRun(scenario)))
  .map((requirement) => {
    const figure = requirement.figure(meanOf);
    return { requirement, figure, passed: holds(requirement, figure, 0) };
  });
console.log("");
for (const { requirement, figure, passed } of checked) {
  console.log(`${passed ? "ok    " : "FAILED"}  ${figure.toFixed(4).padStart(10)}  ${requirement.sentence}`);
}
if (values.only === undefined) {
  await writeFile(join(values.out, "results.md"), resultsPage({ reports, checked, seeds: seeds.length }));
}
const failed = checked.filter(({ passed }) => !passed).length;
console.log(`\n${checked.length - failed} of ${checked.length} requirements hold on ${seeds.length} seeds`);
process.exitCode = failed === 0 ? 0 : 1;
