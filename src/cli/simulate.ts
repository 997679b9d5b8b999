// `waggle simulate SCENARIO…`: measures scheduling rules in virtual time. Needs no swarm and no network. Not here:
// scenarios and rules (sim/policy), tables (simulate/report-text.ts), pictures (simulate/picture.ts).

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Command } from "commander";
import { scenarios } from "../sim/policy/scenarios.ts";
import { runAll } from "../sim/policy/seed-threads.ts";
import { type RuleReport, reportsOf, runsOf, type SimulationRequest } from "../sim/policy/simulate.ts";
import type { TraceRequest } from "../sim/policy/trace-rows.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { fileError } from "./file-error.ts";
import type { Shell } from "./shell.ts";
import { drawPicture, loadVega } from "./simulate/picture.ts";
import { showRuns } from "./simulate/progress.ts";
import { listText, reportText } from "./simulate/report-text.ts";
import {
  alphaOf,
  readTrace,
  rulesOf,
  type SimulateFlags,
  scenariosOf,
  seedRange,
} from "./simulate/request.ts";
import { nameList, numberBetween } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

const SEEDS_DEFAULT = Array.from({ length: 20 }, (_, seed) => seed);

export function simulateCommand(program: Program): Command {
  return new Command("simulate")
    .description(
      "Runs a scenario under one rule or several: the planner of the swarm, the published rules, exactly, and " +
        "rivals. It needs no swarm, network or clock: the same command prints the same figures. Several scenarios " +
        "run one after another. Without a scenario, or with `list`, it lists them.",
    )
    .argument(
      "[scenarios...]",
      "names of scenarios; `trace FILE` replays a CSV file of TIMESTAMP,ContextTokens,GeneratedTokens",
    )
    .option("--rules <name>", "rule to run; default waggle")
    .option(
      "--compare <names>",
      "rules to run side by side, separated by commas; `all`: every rule",
      nameList,
    )
    .option(
      "--alpha <x>",
      "α of the load function, for loco and loco-starvation-limit: 0 to 1; default 0.25",
      numberBetween(0, 1),
    )
    .option("--seeds <seeds>", "number of seeds, from seed 0, or a range like 5..24; default 20", seedRange)
    .option(
      "--svg <file>",
      "draw the result to this file: waterfall, shares over time and waits of the first seed, or the figures. Needs `npm install vega`",
    )
    .addHelpText("after", examples)
    .action((words: string[], flags: SimulateFlags, command: Command) =>
      runVerb(program, command, (context) => simulate(context, words, flags)),
    );
}

const examples = `
Figures are means over the seeds, with their 95 % confidence interval.

With --json it prints one object per scenario and rule: {scenario, rules, alpha, seeds, metrics: {name: {mean, ci95}}}. alpha is null for a rule without α. A metric that was not measured is null. ci95 is null for a single seed, and 0 if the scenario is deterministic.

Examples:
  $ waggle simulate list
  $ waggle simulate loco-overload --compare waggle,loco --alpha 0.5
  $ waggle simulate slow-once joiner --compare waggle,round-robin
  $ waggle simulate lucio-1 --compare waggle,lucio,fifo --svg lucio-1.svg
  $ waggle simulate skew16 --compare all --seeds 5 --json | jq '.rules, .metrics.p99At25.mean'
  $ waggle simulate trace requests.csv --compare all --seeds 3`;

async function simulate(
  context: VerbContext,
  words: readonly string[],
  flags: SimulateFlags,
): Promise<ExitCode> {
  const { output } = context;
  if (words.length === 0 || words[0] === "list") {
    if (output.json)
      for (const { name: of, summary, rules, metrics } of scenarios)
        output.datum({ scenario: of, summary, rules, metrics }, () => "");
    else output.datum({}, () => listText(output));
    return exitCodes.ok;
  }
  const { wanted, file } = scenariosOf(words, flags);
  // Every refusal comes before the first run.
  const requests = wanted.map((scenario): SimulationRequest => {
    const rules = rulesOf(scenario, flags);
    return {
      scenario,
      rules,
      alpha: alphaOf(scenario, rules, flags),
      seeds: flags.seeds ?? SEEDS_DEFAULT,
      wantsTimelines: flags.svg !== undefined,
    };
  });
  if (flags.svg !== undefined) {
    pictureFile(flags.svg, context.shell);
    await loadVega();
  }
  for (const [at, request] of requests.entries()) {
    const { scenario } = request;
    const trace = scenario.needsTrace === true ? await readTrace(file, context) : undefined;
    const reports = await runAndReport(request, trace, flags, context);
    if (output.json)
      for (const { scenario: of, rule, ...report } of reports)
        output.datum({ scenario: of, rules: rule, ...report }, () => "");
    else output.datum(reports, () => `${at === 0 ? "" : "\n"}${reportText(scenario, reports, output)}`);
  }
  return exitCodes.ok;
}

/** Path of the picture, checked before any run. @throws UsageError if the file cannot be written */
function pictureFile(file: string, { cwd }: Shell): string {
  const path = resolve(cwd, file);
  try {
    accessSync(dirname(path), constants.W_OK);
    if (existsSync(path)) accessSync(path, constants.W_OK);
    if (existsSync(path) && statSync(path).isDirectory()) throw new Error("this is a folder");
  } catch (error) {
    throw fileError("write", file, error, "svg");
  }
  return path;
}

async function runAndReport(
  request: SimulationRequest,
  trace: readonly TraceRequest[] | undefined,
  flags: SimulateFlags,
  { output, shell, signal }: VerbContext,
): Promise<RuleReport[]> {
  const runs = runsOf(request);
  const progress = showRuns(output, request.scenario.name, runs.length);
  const results = await runAll(runs, {
    signal,
    tasksPerRun: trace?.length ?? request.scenario.tasks,
    ...(trace === undefined ? {} : { trace }),
    onDone: () => progress.done(),
  }).finally(() => progress.stop());
  const reports = reportsOf(runs, results);
  if (flags.svg !== undefined) {
    const timelines = new Map(
      runs.flatMap(({ rule }, at) => {
        const timeline = results[at]?.timeline;
        return timeline === undefined ? [] : [[rule, timeline] as const];
      }),
    );
    await writeFile(pictureFile(flags.svg, shell), await drawPicture(request.scenario, reports, timelines));
    output.note(`drawn: ${flags.svg}`);
  }
  return reports;
}
