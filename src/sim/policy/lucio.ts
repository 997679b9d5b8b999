// Lucio's two scenarios: one heavy user with 200 tasks, ten light users with 10 each, 20 agents, one time unit
// per task. They differ in the order of submission. Draws nothing, so a single run is enough.

import type { SimTask } from "./dispatcher.ts";
import { contendedJain, tasksOf, waitsMsOf } from "./figures.ts";
import { type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { Metrics, RunInit, RunResult, Scenario } from "./scenario.ts";
import { maximumOf, meanOf } from "./statistics.ts";
import { timelineOf } from "./timeline.ts";
import { dispatcherOf, someUserRules } from "./user-rules.ts";

const UNIT_MS = 1_000;
const HEAVY_TASKS = 200;
const LIGHT_TASKS = 10;
const AGENTS = 20;
/** The document has a queue for large tasks, above 1,000 documents, but does not give their number. Here every
 *  fourth task of the heavy user is large. */
const LARGE_EVERY = 4;

const lightUsers = Array.from({ length: 10 }, (_, at) => `light-${String(at + 1).padStart(2, "0")}`);

function lucioScenario(name: string, summary: string, heavyAt: number, lightAt: number): Scenario {
  return {
    name,
    summary,
    rules: someUserRules("fifo", "two-queues", "round-robin"),
    metrics: {
      lightWait: "mean wait of a light user's task, time units",
      lightWaitWorstUser: "mean wait of the light user who waited most, time units",
      lightWaitMax: "longest wait of any light task, time units",
      lightFirst: "longest time until a light user's first task started, time units",
      heavyDone: "time at which the heavy user's last task ended",
      total: "time at which the last task of all ended",
      jain: "Jain's index of grants over entitlement while two or more users wait",
    },
    better: {
      lightWait: "lower",
      lightWaitWorstUser: "lower",
      lightWaitMax: "lower",
      lightFirst: "lower",
      heavyDone: "lower",
      total: "lower",
      jain: "higher",
    },
    isDeterministic: true,
    tasks: HEAVY_TASKS + lightUsers.length * LIGHT_TASKS,
    run(init: RunInit): RunResult {
      const workload = workloadOf(heavyAt, lightAt);
      const log = runTasks(workload, dispatcherOf(workload, init, UNIT_MS));
      return {
        metrics: figuresOf(log),
        ...(init.wantsTimeline ? { timeline: timelineOf(log, "units", UNIT_MS) } : {}),
      };
    },
  };
}

export const lucio1 = lucioScenario(
  "lucio-1",
  "one heavy user submits 200 tasks at 0, ten light users 10 each from 2 on; 20 agents",
  0,
  2,
);
export const lucio2 = lucioScenario(
  "lucio-2",
  "ten light users submit 10 tasks each from 0 on, the heavy user 200 at 1; 20 agents",
  1,
  0,
);

function workloadOf(heavyAt: number, lightAt: number): Workload {
  const submissions = [
    { user: "heavy", at: heavyAt, count: HEAVY_TASKS },
    ...lightUsers.map((user, place) => ({ user, at: lightAt + place / 10, count: LIGHT_TASKS })),
  ];
  const tasks = submissions
    .sort((a, b) => a.at - b.at)
    .flatMap(({ user, at, count }) =>
      Array.from({ length: count }, (_, n) => ({
        user,
        arrivesAt: Math.round(at * UNIT_MS),
        size: user === "heavy" && n % LARGE_EVERY === 0 ? 2 : 1,
      })),
    )
    .map((task, index): SimTask => ({ ...task, index, project: "lucio", kind: "document", weight: 1 }));
  return {
    agents: Array.from({ length: AGENTS }, (_, index) => ({ index, maxConcurrent: 1, kinds: ["document"] })),
    tasks,
    attemptsMax: 1,
    attemptOf: () => ({ ms: UNIT_MS, succeeds: true }),
  };
}

function figuresOf(log: Log): Metrics {
  const lights = lightUsers.map((user) => tasksOf(log, user));
  const waits = lights.map((tasks) => waitsMsOf(tasks).map((ms) => ms / UNIT_MS));
  const firsts = lights.map((tasks) => Math.min(...waitsMsOf(tasks)) / UNIT_MS);
  const ends = (tasks: Log["tasks"]) => maximumOf(tasks.map(({ endedAt }) => endedAt ?? 0)) / UNIT_MS;
  return {
    lightWait: meanOf(waits.flat()),
    lightWaitWorstUser: maximumOf(waits.map(meanOf)),
    lightWaitMax: maximumOf(waits.flat()),
    lightFirst: maximumOf(firsts),
    heavyDone: ends(tasksOf(log, "heavy")),
    total: ends(log.tasks),
    jain: contendedJain(log),
  };
}
