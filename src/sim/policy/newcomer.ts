// Two small scenarios on a single agent slot. In the first, a new user arrives after an older user has worked
// alone for long. In the second, a user waits with a task that no agent can serve, and later submits a servable
// task. Both test a rule's memory of the past. Draws nothing.

import type { SimTask } from "./dispatcher.ts";
import { longestRun } from "./figures.ts";
import { type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";
import { maximumOf } from "./statistics.ts";
import { timelineOf } from "./timeline.ts";
import { dispatcherOf, someUserRules } from "./user-rules.ts";

const TICK_MS = 1_000;

interface Submission {
  readonly tick: number;
  readonly user: string;
  readonly project: string;
  readonly kind: string;
  readonly count: number;
}

function run(submissions: readonly Submission[], ticks: number, init: RunInit): Log {
  const tasks = submissions
    .flatMap(({ count, ...task }) => Array.from({ length: count }, () => task))
    .sort((a, b) => a.tick - b.tick)
    .map(
      ({ tick, ...task }, index): SimTask => ({
        ...task,
        index,
        arrivesAt: tick * TICK_MS,
        weight: 1,
        size: 1,
      }),
    );
  const workload: Workload = {
    agents: [{ index: 0, maxConcurrent: 1, kinds: ["common"] }],
    tasks,
    attemptsMax: 1,
    untilMs: ticks * TICK_MS,
    attemptOf: () => ({ ms: TICK_MS, succeeds: true }),
  };
  return runTasks(workload, dispatcherOf(workload, init, TICK_MS));
}

const NEWCOMER_TICK = 1_000;
const NEWCOMER_TICKS = 2_100;

export const newcomer: Scenario = {
  name: "newcomer",
  summary:
    "A works alone for 1,000 ticks, then B comes with 500 tasks while A goes on; two users, two projects",
  rules: someUserRules("fifo", "round-robin", "window-usage"),
  metrics: {
    gapUsers: "longest time either user waited for its next turn once both wait, ticks",
    gapProjects: "the same where A and B are projects with one user each",
    newcomerShare: "B's share of the 500 turns after it came, users; 0.5 is even",
  },
  better: { gapUsers: "lower", gapProjects: "lower" },
  isDeterministic: true,
  tasks: 5_000,
  run(init: RunInit): RunResult {
    const users = run(newcomerTasks(["p", "p"]), NEWCOMER_TICKS, init);
    const projects = run(newcomerTasks(["a", "b"]), NEWCOMER_TICKS, init);
    const after = users.attempts
      .filter(({ startedAt }) => startedAt >= NEWCOMER_TICK * TICK_MS)
      .slice(0, 500);
    return {
      metrics: {
        gapUsers: longestGap(users),
        gapProjects: longestGap(projects),
        newcomerShare: after.filter(({ task }) => task.user === "B").length / after.length,
      },
      ...(init.wantsTimeline ? { timeline: timelineOf(users, "ticks", TICK_MS, NEWCOMER_TICK) } : {}),
    };
  },
};

function newcomerTasks([first, second]: readonly [string, string]): Submission[] {
  return [
    { tick: 0, user: "A", project: first, kind: "common", count: 2_000 },
    { tick: NEWCOMER_TICK, user: "B", project: second, kind: "common", count: 500 },
  ];
}

/** Longest time between two turns of A or B, from B's arrival until either has no task left. A turn that never
 *  came counts to the end of the run. */
function longestGap(log: Log): number {
  const from = NEWCOMER_TICK * TICK_MS;
  const gaps = ["A", "B"].map((user) => {
    const turns = log.attempts.filter(({ task, startedAt }) => task.user === user && startedAt >= from);
    const isLeftOver = log.tasks.some(({ task, startedAt }) => task.user === user && startedAt === undefined);
    const starts = turns.map(({ startedAt }) => startedAt);
    const moments = [from - TICK_MS, ...starts, ...(isLeftOver ? [log.endedAt] : [])];
    return maximumOf(moments.slice(1).map((moment, at) => moment - (moments[at] as number)));
  });
  return maximumOf(gaps) / TICK_MS;
}

const SUBMITS_TICK = 200;

export const mixedKinds: Scenario = {
  name: "mixed-kinds",
  summary:
    "X waits with a task of a kind nobody serves while A and B are served; at tick 200 it submits a common one",
  rules: someUserRules("fifo", "round-robin", "standing-clock"),
  metrics: {
    longestRun: "most turns in a row of one user, from tick 200 on",
    share: "X's share of the 90 turns from tick 200 on; 1/3 is even",
  },
  better: { longestRun: "lower" },
  isDeterministic: true,
  tasks: 901,
  run(init: RunInit): RunResult {
    const common = { project: "p", kind: "common" };
    const log = run(
      [
        { ...common, tick: 0, user: "A", count: 400 },
        { ...common, tick: 0, user: "B", count: 400 },
        { tick: 0, user: "X", project: "p", kind: "rare", count: 1 },
        { ...common, tick: SUBMITS_TICK, user: "X", count: 100 },
      ],
      500,
      init,
    );
    const from = SUBMITS_TICK * TICK_MS;
    const after = log.attempts.filter(({ startedAt }) => startedAt >= from).slice(0, 90);
    return {
      metrics: {
        longestRun: longestRun(log, (startedAt) => startedAt >= from && startedAt < from + 300 * TICK_MS),
        share: after.filter(({ task }) => task.user === "X").length / after.length,
      },
      ...(init.wantsTimeline ? { timeline: timelineOf(log, "ticks", TICK_MS, SUBMITS_TICK) } : {}),
    };
  },
};
