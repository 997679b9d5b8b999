// Two equal agents about which the rule knows different things: one ran a single slow task (slow-once), or
// joined after the first had worked alone (joiner). At light load both are nearly always free, so a rule that
// prefers the better known agent locks the second out. Figures are shares of assignments; 0.5 is even.

import type { SeededRandom } from "../random.ts";
import { agentDispatcherOf, agentRules } from "./agent-rules.ts";
import type { SimAgent, SimTask } from "./dispatcher.ts";
import { drawTasks } from "./draw-tasks.ts";
import { type AttemptLog, type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";

const SECOND_MS = 1_000;
const TASK_MS = 20;
const SLOW_MS = 4_000;
/** Tasks before the slow task, so that both agents have a record. */
const SLOW_INDEX = 100;
const MEASURED_MS = 120 * SECOND_MS;

/** Capacity of two agents with one concurrent task each and tasks of 20 ms, tasks per second. */
const CAPACITY = (2 * SECOND_MS) / TASK_MS;

const agentsOf = (joinsAt?: number): SimAgent[] => [
  { index: 0, maxConcurrent: 1, kinds: ["call"] },
  { index: 1, maxConcurrent: 1, kinds: ["call"], ...(joinsAt === undefined ? {} : { joinsAt }) },
];

/** Tasks of about 20 ms, uniform between three quarters and five quarters of 20 ms. */
function serviceMs({ index }: SimTask, random: SeededRandom): number {
  return TASK_MS * (0.75 + random.split(`service ${index}`).fraction() / 2);
}

/** Share of the agent with the slow task among the assignments within `withinMs` after the slow task ended. */
function shareAfterSlow({ attempts }: Log, withinMs: number): number {
  const slow = attempts.find(({ task }) => task.index === SLOW_INDEX) as AttemptLog;
  const after = attempts.filter(
    ({ startedAt }) => startedAt >= slow.endsAt && startedAt < slow.endsAt + withinMs,
  );
  return after.filter(({ agent }) => agent === slow.agent).length / after.length;
}

/** @param load the load of both agents together */
function slowRun(load: number, init: RunInit): Log {
  const random = init.random.split(`load ${load}`);
  const everyMs = SECOND_MS / (load * CAPACITY);
  const count = SLOW_INDEX + Math.ceil((SLOW_MS + 1.1 * MEASURED_MS) / everyMs);
  const workload: Workload = {
    agents: agentsOf(),
    tasks: drawTasks({ count, everyMs, random, kindOf: () => "call" }),
    attemptsMax: 1,
    attemptOf: ({ task }) => ({
      ms: task.index === SLOW_INDEX ? SLOW_MS : serviceMs(task, random),
      succeeds: true,
    }),
  };
  return runTasks(workload, agentDispatcherOf(workload, init));
}

export const slowOnce: Scenario = {
  name: "slow-once",
  summary: "two equal agents with tasks of 20 ms, at 10 % and 30 % load; one task takes 4 s",
  rules: agentRules,
  metrics: {
    share30At10: "share of the agent that ran the slow task, 30 s after its end, at 10 % load; 0.5 is even",
    share120At10: "the same within 2 min",
    share30At30: "the same within 30 s, at 30 % load",
    share120At30: "the same within 2 min, at 30 % load",
  },
  better: {},
  tasks: 6_000,
  charted: {
    share30At10: { title: "Given to the agent that was slow once, 30 s after", axis: "share of assignments" },
    share120At10: { title: "Given to it within 2 min", axis: "share of assignments" },
  },
  run(init: RunInit): RunResult {
    const [light, busier] = [slowRun(0.1, init), slowRun(0.3, init)];
    return {
      metrics: {
        share30At10: shareAfterSlow(light, MEASURED_MS / 4),
        share120At10: shareAfterSlow(light, MEASURED_MS),
        share30At30: shareAfterSlow(busier, MEASURED_MS / 4),
        share120At30: shareAfterSlow(busier, MEASURED_MS),
      },
    };
  },
};

/** Share of the second agent among the first 300 assignments after it joined. */
function joinerShare({ attempts }: Log, joinsAt: number): number {
  const after = attempts.filter(({ startedAt }) => startedAt >= joinsAt).slice(0, JOINER_MEASURED);
  return after.filter(({ agent }) => agent.index === 1).length / after.length;
}

const JOINER_MEASURED = 300;
/** Tasks that the first agent has completed when the second joins. */
const FEW = 40;
const MANY = 1_000;

/** Random arrivals at 10 % load of both agents; the second joins with task `before`. */
function joinerRun(before: number, init: RunInit): number {
  const random = init.random.split(`after ${before}`);
  const everyMs = SECOND_MS / (0.1 * CAPACITY);
  const count = before + 2 * JOINER_MEASURED;
  return joinerShareOf(drawTasks({ count, everyMs, random, kindOf: () => "call" }), before, random, init);
}

/** Consecutive tasks: each arrives when its predecessor has certainly ended. */
function inTurnRun(before: number, init: RunInit): number {
  const tasks = Array.from(
    { length: before + 2 * JOINER_MEASURED },
    (_, index): SimTask => ({
      index,
      arrivesAt: index * 2 * TASK_MS,
      user: "u",
      project: "p",
      kind: "call",
      weight: 1,
      size: 1,
    }),
  );
  return joinerShareOf(tasks, before, init.random.split("in turn"), init);
}

function joinerShareOf(
  tasks: readonly SimTask[],
  before: number,
  random: SeededRandom,
  init: RunInit,
): number {
  const joinsAt = tasks[before]?.arrivesAt ?? 0;
  const workload: Workload = {
    agents: agentsOf(joinsAt),
    tasks,
    attemptsMax: 1,
    attemptOf: ({ task }) => ({ ms: serviceMs(task, random), succeeds: true }),
  };
  return joinerShare(runTasks(workload, agentDispatcherOf(workload, init)), joinsAt);
}

export const joiner: Scenario = {
  name: "joiner",
  summary: "an agent works alone at light load, then an equal one joins; tasks of 20 ms",
  rules: agentRules,
  metrics: {
    inTurn: "share of the agent that joined after 40 tasks, of the next 300, one after another; 0.5 is even",
    afterFew: "its share of the next 300 after 40 tasks, at 10 % load",
    afterMany: "its share of the next 300 after 1,000 tasks, at 10 % load",
  },
  better: {},
  tasks: 3_000,
  charted: {
    inTurn: { title: "Given to the agent that joined, one task after another", axis: "share of assignments" },
    afterMany: { title: "Given to it after 1,000 tasks, at 10 % load", axis: "share of assignments" },
  },
  run(init: RunInit): RunResult {
    return {
      metrics: {
        inTurn: inTurnRun(FEW, init),
        afterFew: joinerRun(FEW, init),
        afterMany: joinerRun(MANY, init),
      },
    };
  },
};
