// One queue of equal tasks, with agents of different (skew16) or equal speed (equal4). Shows the effect of
// choosing the agent and the moment of the choice. Figures are of the time in system, from arrival to end.

import type { SeededRandom } from "../random.ts";
import { agentDispatcherOf, agentRules } from "./agent-rules.ts";
import { drawTasks } from "./draw-tasks.ts";
import { sojournsMsOf } from "./figures.ts";
import { runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";
import { percentileOf } from "./statistics.ts";

const SECOND_MS = 1_000;
const TASKS = 100_000;

interface Station {
  /** Mean service time of each agent, s. */
  readonly means: readonly number[];
  /** Arrival rate as a share of the agents' total capacity. */
  readonly load: number;
  readonly tasks: number;
}

function workloadOf({ means, load, tasks: count }: Station, random: SeededRandom): Workload {
  const capacity = means.reduce((sum, mean) => sum + 1 / mean, 0);
  const tasks = drawTasks({ count, everyMs: SECOND_MS / (load * capacity), random, kindOf: () => "call" });
  return {
    agents: means.map((_, index) => ({ index, maxConcurrent: 1, kinds: ["call"] })),
    tasks,
    attemptsMax: 1,
    attemptOf: ({ task, agent }) => ({
      ms: task.size * (means[agent.index] ?? 1) * SECOND_MS,
      succeeds: true,
    }),
  };
}

/** p50 and p99 of the time in system, s. */
function timesOf(station: Station, init: RunInit): { readonly p50: number; readonly p99: number } {
  const tasks = Math.round(station.tasks * init.share);
  const workload = workloadOf({ ...station, tasks }, init.random.split(`load ${station.load}`));
  const times = sojournsMsOf(runTasks(workload, agentDispatcherOf(workload, init)).tasks);
  return { p50: percentileOf(times, 0.5) / SECOND_MS, p99: percentileOf(times, 0.99) / SECOND_MS };
}

/** In order of joining: a rule that breaks ties by this order must not find the fastest agent first. */
function shuffled(means: number[], random: SeededRandom): number[] {
  for (let at = means.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1);
    [means[at], means[other]] = [means[other] as number, means[at] as number];
  }
  return means;
}

/** With early binding and without knowledge of the agents, each agent gets 1/16 of the tasks. At 70 % load the
 *  eight slowest agents are overloaded, and their queues grow without end. */
const unstableAt70 = new Set(["random", "round-robin"]);

export const skew16: Scenario = {
  name: "skew16",
  summary:
    "16 agents with mean service 1 to 16 s that join in any order, at 25 % and 70 % of their capacity, 100,000 tasks each",
  rules: agentRules,
  metrics: {
    p50At25: "median time in system at 25 % load, s",
    p99At25: "99th percentile of the time in system at 25 % load, s",
    p50At70: "median time in system at 70 % load, s; not measured where the queues grow without end",
    p99At70: "99th percentile of the time in system at 70 % load, s",
  },
  better: { p50At25: "lower", p99At25: "lower", p50At70: "lower", p99At70: "lower" },
  tasks: 2 * TASKS,
  charted: {
    p99At25: { title: "Time in system at 25 % load", axis: "99th percentile, s" },
    p99At70: { title: "Time in system at 70 % load", axis: "99th percentile, s" },
  },
  run(init: RunInit): RunResult {
    const means = shuffled(
      Array.from({ length: 16 }, (_, at) => at + 1),
      init.random.split("agents"),
    );
    const low = timesOf({ means, load: 0.25, tasks: TASKS }, init);
    const metrics = { p50At25: low.p50, p99At25: low.p99 };
    if (unstableAt70.has(init.rule)) return { metrics };
    const high = timesOf({ means, load: 0.7, tasks: TASKS }, init);
    return { metrics: { ...metrics, p50At70: high.p50, p99At70: high.p99 } };
  },
};

export const equal4: Scenario = {
  name: "equal4",
  summary: "4 equal agents at 90 % load, 100,000 tasks: where clever rules can lose",
  rules: agentRules,
  metrics: { p50: "median time in system, s", p99: "99th percentile of the time in system, s" },
  better: { p50: "lower", p99: "lower" },
  tasks: TASKS,
  charted: {
    p50: { title: "Time in system, median", axis: "median, s" },
    p99: { title: "Time in system, slowest hundredth", axis: "99th percentile, s" },
  },
  run(init: RunInit): RunResult {
    return { metrics: { ...timesOf({ means: [1, 1, 1, 1], load: 0.9, tasks: TASKS }, init) } };
  },
};
