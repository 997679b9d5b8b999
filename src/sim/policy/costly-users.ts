// Two users with equal shares and permanent backlog, one with tasks of cost 5, one with tasks of cost 1, on a
// single agent slot. Equal shares of cost mean five turns of the cheap user per turn of the costly user. Draws
// nothing.

import type { SimTask } from "./dispatcher.ts";
import { runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";
import { timelineOf } from "./timeline.ts";
import { dispatcherOf, someUserRules } from "./user-rules.ts";

const TICK_MS = 1_000;
const TICKS = 600;
const users = [
  { user: "costly", weight: 5 },
  { user: "cheap", weight: 1 },
] as const;

/** As many tasks per user as the run has ticks, so the backlog never empties. */
const tasks: readonly SimTask[] = Array.from(
  { length: 2 * TICKS },
  (_, index): SimTask => ({
    index,
    arrivesAt: 0,
    project: "p",
    kind: "call",
    size: 1,
    ...(users[index % 2] as (typeof users)[number]),
  }),
);

export const costlyUsers: Scenario = {
  name: "costly-users",
  summary:
    "two users of equal share always wait, with tasks of cost 5 and of cost 1; 600 turns on one agent of capacity 1",
  rules: someUserRules("fifo", "round-robin"),
  metrics: {
    turnsPerTurn:
      "turns of the user with cost 1 for each turn of the user with cost 5; 5 is an equal share of cost",
    costlyShare: "share of all cost that went to the user with cost 5; 0.5 is even",
  },
  better: {},
  isDeterministic: true,
  tasks: TICKS,
  run(init: RunInit): RunResult {
    const workload: Workload = {
      agents: [{ index: 0, maxConcurrent: 1, kinds: ["call"] }],
      tasks,
      attemptsMax: 1,
      untilMs: TICKS * TICK_MS,
      attemptOf: () => ({ ms: TICK_MS, succeeds: true }),
    };
    const log = runTasks(workload, dispatcherOf(workload, init, TICK_MS));
    const turnsOf = (user: string) => log.attempts.filter(({ task }) => task.user === user).length;
    const [costly, cheap] = [turnsOf("costly"), turnsOf("cheap")];
    return {
      metrics: { turnsPerTurn: cheap / costly, costlyShare: (5 * costly) / (5 * costly + cheap) },
      ...(init.wantsTimeline ? { timeline: timelineOf(log, "ticks", TICK_MS, 0) } : {}),
    };
  },
};
