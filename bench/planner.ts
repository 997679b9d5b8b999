// Cost of a decision of the planner, by the number of agents, users, projects and tasks, and by the free capacity in a
// round. Memory of a waiting task. docs/benchmarks.md holds the results.
//     npm run bench:planner             the required corners and the axes through the middle; exits 1 if a requirement
//                                       is not met
//     npm run bench:planner -- --all    every combination
//     npm run bench:planner -- --required   only the required corners
//     npm run bench:planner -- --json   one object with all figures
//
// A decision is the opening of the round and all calls of `next`, divided by the number of grants. The opening counts
// to the round's first decision, and so p99 in rounds of 64 shows the opening. Applying assignments is measured
// separately. Each figure is the median of several repetitions in a run, with the spread.

import { cpus } from "node:os";
import { Presets, SingleBar } from "cli-progress";
import { flagsOrExitCode } from "./harness/refusing.ts";
import { median, quantile } from "./harness/statistics.ts";
import { LoadedSwarm, payloadBytes, type Sizes } from "./loaded-swarm.ts";
import {
  isMet,
  type PlannerFlags,
  type Requirement,
  readFlags,
  requirementLine,
  rounded,
  sizesMeasured,
  usage,
} from "./planner-flags.ts";

const {
  agents: agentCounts,
  users: userCounts,
  queued: queuedCounts,
  projects: projectCounts,
} = sizesMeasured;
const grantsOfRounds = [1, 64, 4_096];
/** Rounds per repetition, by size. */
const roundsOf: Readonly<Record<number, number>> = { 1: 1_000, 64: 100, 4096: 3 };

const middle: Sizes = { agents: 1_000, users: 1_000, queued: 100_000, projects: 10 };
const largest: Sizes = { agents: 10_000, users: 10_000, queued: 1_000_000, projects: 100 };
const tenthOfLargest: Sizes = { ...largest, queued: 100_000 };

interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

interface Result extends Sizes {
  readonly grants: number;
  /** µs a decision. */
  readonly mean: Figure;
  readonly p50: Figure;
  readonly p99: Figure;
  /** µs to apply one assignment. */
  readonly apply: Figure;
}

function chosenSizes(values: PlannerFlags): readonly Sizes[] {
  const all = agentCounts.flatMap((agents) =>
    userCounts.flatMap((users) =>
      queuedCounts.flatMap((queued) =>
        projectCounts.map((projects) => ({ agents, users, queued, projects })),
      ),
    ),
  );
  const required = [tenthOfLargest, largest];
  const axes: readonly Sizes[] = [
    ...agentCounts.map((agents) => ({ ...middle, agents })),
    ...userCounts.map((users) => ({ ...middle, users })),
    ...queuedCounts.map((queued) => ({ ...middle, queued })),
    ...projectCounts.map((projects) => ({ ...middle, projects })),
    ...required,
  ];
  const names = new Set((values.required ? required : axes).map(nameOf));
  return all.filter((sizes) =>
    values.only === undefined ? values.all || names.has(nameOf(sizes)) : nameOf(sizes) === values.only,
  );
}

function nameOf({ agents, users, queued, projects }: Sizes): string {
  return `${agents}/${users}/${queued}/${projects}`;
}

/** Bytes of heap per task beyond its payload, while the queue fills up. Undefined without --expose-gc. */
function fillMeasured(swarm: LoadedSwarm, { queued }: Sizes): number | undefined {
  const collect = globalThis.gc;
  if (collect === undefined) {
    swarm.fill();
    return undefined;
  }
  const shares = [0.25, 0.5, 0.75, 1];
  collect();
  const before = process.memoryUsage().heapUsed;
  const bytes = shares.map((share) => {
    swarm.fill(share);
    collect();
    return (process.memoryUsage().heapUsed - before) / (queued * share) - payloadBytes;
  });
  return Math.max(...bytes);
}

function measure(swarm: LoadedSwarm, sizes: Sizes, grants: number, repetitions: number): Result {
  const rounds = roundsOf[grants] ?? 1;
  const means: number[] = [];
  const p50s: number[] = [];
  const p99s: number[] = [];
  const applies: number[] = [];
  for (let repetition = -1; repetition < repetitions; repetition += 1) {
    const decisions: number[] = [];
    let applyMs = 0;
    for (let round = 0; round < rounds; round += 1) {
      applyMs += swarm.turn(grants, (ms) => decisions.push(ms * 1_000));
    }
    if (decisions.length < (rounds * grants) / 2)
      throw new Error(`${nameOf(sizes)}: ${decisions.length} grants in ${rounds} rounds of ${grants}`);
    // The first warms up.
    if (repetition === -1) continue;
    means.push(decisions.reduce((sum, us) => sum + us, 0) / decisions.length);
    p50s.push(quantile(decisions, 0.5));
    p99s.push(quantile(decisions, 0.99));
    applies.push((applyMs * 1_000) / decisions.length);
  }
  const [mean, p50, p99, apply] = [means, p50s, p99s, applies].map(figureOf) as [
    Figure,
    Figure,
    Figure,
    Figure,
  ];
  return { ...sizes, grants, mean, p50, p99, apply };
}

function figureOf(samples: readonly number[]): Figure {
  return { median: median(samples), min: Math.min(...samples), max: Math.max(...samples) };
}

function requirementsOf(results: readonly Result[], bytesPerTask: number | undefined): Requirement[] {
  const at = (sizes: Sizes, grants: number) =>
    results.find((result) => nameOf(result) === nameOf(sizes) && result.grants === grants)?.mean.median;
  const growth = (grants: number) => {
    const [after, before] = [at(largest, grants), at(tenthOfLargest, grants)];
    return after === undefined || before === undefined ? undefined : after / before;
  };
  return [
    { what: "largest, rounds of 64: mean µs a decision", value: at(largest, 64), max: 5 },
    { what: "largest, rounds of 1: mean µs a decision", value: at(largest, 1), max: 50 },
    { what: "from 10⁵ to 10⁶ queued, rounds of 64: growth of the mean", value: growth(64), max: 1.5 },
    { what: "from 10⁵ to 10⁶ queued, rounds of 1: growth of the mean", value: growth(1), max: 1.5 },
    { what: "heap bytes a queued task beyond its payload", value: bytesPerTask, max: 1_024 },
  ];
}

function environment(): string {
  const model = cpus()[0]?.model ?? "unknown processor";
  return `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cpus().length} × ${model}`;
}

function print(results: readonly Result[], requirements: readonly Requirement[], repetitions: number): void {
  console.log(`\n${environment()}`);
  console.log(`median of ${repetitions} repetitions (least–most), µs\n`);
  console.log(
    "agents   users  queued     proj.  grants   mean                   p50                    p99                    apply",
  );
  for (const { agents, users, queued, projects, grants, mean, p50, p99, apply } of results) {
    const sizes = [agents, users, queued, projects, grants].map((size, at) =>
      String(size).padEnd([9, 7, 11, 7, 9][at] ?? 0),
    );
    console.log(
      `${sizes.join("")}${[mean, p50, p99, apply].map((figure) => shown(figure).padEnd(23)).join("")}`.trimEnd(),
    );
  }
  console.log("");
  for (const requirement of requirements) console.log(requirementLine(requirement));
}

function shown({ median, min, max }: Figure): string {
  return `${rounded(median)} (${rounded(min)}–${rounded(max)})`;
}

function main(): number {
  const flags = flagsOrExitCode(readFlags(process.argv.slice(2)), usage);
  if (typeof flags === "number") return flags;
  const { repetitions } = flags;
  const chosen = chosenSizes(flags);
  const bar = new SingleBar(
    { format: "{bar} {value}/{total} {what}", stream: process.stderr },
    Presets.shades_classic,
  );
  if (process.stderr.isTTY) bar.start(chosen.length * (1 + grantsOfRounds.length), 0, { what: "" });
  const results: Result[] = [];
  let bytesPerTask: number | undefined;
  for (const sizes of chosen) {
    bar.update({ what: `${nameOf(sizes)} filling` });
    const swarm = new LoadedSwarm(sizes);
    const bytes = fillMeasured(swarm, sizes);
    if (nameOf(sizes) === nameOf(largest)) bytesPerTask = bytes;
    swarm.start();
    bar.increment();
    for (const grants of grantsOfRounds) {
      bar.update({ what: `${nameOf(sizes)} rounds of ${grants}` });
      results.push(measure(swarm, sizes, grants, repetitions));
      bar.increment();
    }
  }
  bar.stop();
  const requirements = requirementsOf(results, bytesPerTask);
  if (flags.json) {
    const shownRequirements = requirements.map(({ value = null, ...rest }) => ({ ...rest, value }));
    console.log(
      JSON.stringify({ environment: environment(), repetitions, results, requirements: shownRequirements }),
    );
  } else print(results, requirements, repetitions);
  return requirements.every((one) => isMet(one, flags.only !== undefined)) ? 0 : 1;
}

process.exitCode = main();
