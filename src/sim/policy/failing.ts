// Agents that fail: two agents that fail one of two kinds until repaired (flaky), and an agent that fails every
// task at once, and so is always free (black-hole).

import { agentDispatcherOf, agentRules } from "./agent-rules.ts";
import type { SimTask } from "./dispatcher.ts";
import { drawTasks } from "./draw-tasks.ts";
import { sojournsMsOf } from "./figures.ts";
import { type AttemptLog, type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { Metrics, RunInit, RunResult, Scenario } from "./scenario.ts";
import { percentileOf } from "./statistics.ts";

const SECOND_MS = 1_000;
const ATTEMPTS = 3;
/** 0.5 s after the first failure, 1 s after the second. */
const backOffMs = (failures: number) => 500 * 2 ** (failures - 1);

const FLAKY_TASKS = 20_000;
const FLAKY_AGENTS = 8;
const BROKEN = 2;
const FAILS = 0.4;
const FAILS_AFTER_MS = 100;

function flakyWorkload({ random, share }: RunInit): {
  readonly workload: Workload;
  readonly repairedAt: number;
} {
  const count = Math.round(FLAKY_TASKS * share);
  const kinds = random.split("kinds");
  const tasks = drawTasks({
    count,
    everyMs: SECOND_MS / (0.7 * FLAKY_AGENTS * 4),
    random,
    kindOf: () => (kinds.chance(0.5) ? "broken" : "fine"),
  });
  const repairedAt = tasks[Math.floor(count / 2)]?.arrivesAt ?? 0;
  const lots = random.split("failures");
  const workload: Workload = {
    agents: Array.from({ length: FLAKY_AGENTS }, (_, index) => ({
      index,
      maxConcurrent: 4,
      kinds: ["broken", "fine"],
    })),
    tasks,
    attemptsMax: ATTEMPTS,
    attemptOf: ({ task, agent }, attempt, at) => {
      const isBroken = agent.index < BROKEN && task.kind === "broken" && at < repairedAt;
      const fails = isBroken && lots.split(`${task.index}.${attempt}`).chance(FAILS);
      return fails ? { ms: FAILS_AFTER_MS, succeeds: false } : { ms: task.size * SECOND_MS, succeeds: true };
    },
  };
  return { workload, repairedAt };
}

export const flaky: Scenario = {
  name: "flaky",
  summary:
    "8 agents, two of which fail 40 % of one kind, quickly, until they are repaired half-way; 20,000 tasks",
  rules: agentRules,
  metrics: {
    firstAttempt: "share of the tasks that succeeded at the first attempt",
    failedAttempts: "attempts that failed",
    wasted: "agents' time they took, s",
    dead: "tasks that ended without success",
    brokenShare: "the two's share of the kind they fail, before the repair; 0.25 is their part",
    fineShare: "their share of the other kind, before the repair",
    repairedShare: "their share of the kind they failed, in the last quarter of the run",
    p99: "99th percentile of the time in system, s",
  },
  better: {
    firstAttempt: "higher",
    failedAttempts: "lower",
    wasted: "lower",
    dead: "lower",
    repairedShare: "higher",
    p99: "lower",
  },
  tasks: FLAKY_TASKS,
  charted: {
    failedAttempts: { title: "Failed attempts", axis: "attempts" },
    brokenShare: { title: "Given to the two while they fail", axis: "share of their kind" },
    repairedShare: { title: "Given to the two when they are repaired", axis: "share of their kind" },
  },
  run(init: RunInit): RunResult {
    const { workload, repairedAt } = flakyWorkload(init);
    const log = runTasks(workload, agentDispatcherOf(workload, init, { backOffMs }));
    return { metrics: flakyFigures(log, repairedAt) };
  },
};

function flakyFigures(log: Log, repairedAt: number): Metrics {
  const lastQuarter = log.tasks[Math.floor((log.tasks.length * 3) / 4)]?.task.arrivesAt ?? 0;
  const shareOfTwo = (isMeant: (attempt: AttemptLog) => boolean) => {
    const attempts = log.attempts.filter(isMeant);
    return attempts.filter(({ agent }) => agent.index < BROKEN).length / attempts.length;
  };
  const failed = log.attempts.filter(({ succeeds }) => !succeeds);
  return {
    firstAttempt:
      log.tasks.filter(({ succeeded, attempts }) => succeeded && attempts === 1).length / log.tasks.length,
    failedAttempts: failed.length,
    wasted: failed.reduce((sum, { startedAt, endsAt }) => sum + endsAt - startedAt, 0) / SECOND_MS,
    dead: log.tasks.filter(({ endedAt, succeeded }) => endedAt !== undefined && !succeeded).length,
    brokenShare: shareOfTwo(({ task, startedAt }) => task.kind === "broken" && startedAt < repairedAt),
    fineShare: shareOfTwo(({ task, startedAt }) => task.kind === "fine" && startedAt < repairedAt),
    repairedShare: shareOfTwo(({ task, startedAt }) => task.kind === "broken" && startedAt >= lastQuarter),
    p99: percentileOf(sojournsMsOf(log.tasks), 0.99) / SECOND_MS,
  };
}

const BLACK_HOLE_TASKS = 1_000;
/** Duration of a refusal with its transport: at 16 ms a swarm without filters loses as many tasks as the
 *  published 856. */
const FAILS_AT_ONCE_MS = 16;

export const blackHole: Scenario = {
  name: "black-hole",
  summary: "4 agents of capacity 4, one fails everything at once; 1,000 tasks wait, 3 attempts each",
  rules: agentRules,
  metrics: {
    dead: "tasks that ended without success, of 1,000",
    failedAttempts: "attempts that failed",
    total: "time until the last task ended, s",
  },
  better: { dead: "lower", failedAttempts: "lower" },
  tasks: BLACK_HOLE_TASKS,
  charted: {
    dead: { title: "Ended without success", axis: "tasks" },
    failedAttempts: { title: "Failed attempts", axis: "attempts" },
  },
  run(init: RunInit): RunResult {
    const sizes = init.random.split("sizes");
    const tasks = Array.from(
      { length: BLACK_HOLE_TASKS },
      (_, index): SimTask => ({
        index,
        arrivesAt: 0,
        user: "u",
        project: "p",
        kind: "call",
        weight: 1,
        size: sizes.exponential(1),
      }),
    );
    const workload: Workload = {
      agents: Array.from({ length: 4 }, (_, index) => ({ index, maxConcurrent: 4, kinds: ["call"] })),
      tasks,
      attemptsMax: ATTEMPTS,
      attemptOf: ({ task, agent }) =>
        agent.index === 0
          ? { ms: FAILS_AT_ONCE_MS, succeeds: false }
          : { ms: task.size * SECOND_MS, succeeds: true },
    };
    const log = runTasks(workload, agentDispatcherOf(workload, init, { backOffMs }));
    return {
      metrics: {
        dead: log.tasks.filter(({ endedAt, succeeded }) => endedAt !== undefined && !succeeded).length,
        failedAttempts: log.attempts.filter(({ succeeds }) => !succeeds).length,
        total: log.endedAt / SECOND_MS,
      },
    };
  },
};
