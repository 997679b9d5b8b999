// Replays a recorded trace of requests to a language model: real arrivals and real sizes. The trace has no
// tenants: a seeded Zipf draw assigns each request to one of 50 users, so that a few users send most requests.

import { InvalidValueError } from "../../errors.ts";
import type { SimTask } from "./dispatcher.ts";
import { contendedJain, waitsMsOf } from "./figures.ts";
import { type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { Metrics, RunInit, RunResult, Scenario } from "./scenario.ts";
import { maximumOf, percentileOf } from "./statistics.ts";
import { timelineOf } from "./timeline.ts";
import type { TraceRequest } from "./trace-rows.ts";
import { dispatcherOf, someUserRules } from "./user-rules.ts";

const SECOND_MS = 1_000;
const USERS = 50;
const ZIPF_EXPONENT = 1.1;
/** An agent reads 4,000 tokens per second and writes 40: an average model on an average machine. */
const READ_MS_PER_TOKEN = 0.25;
const WRITE_MS_PER_TOKEN = 25;
/** The number of agents is chosen for this utilisation over the whole trace. */
const BUSY = 0.95;

const users = Array.from({ length: USERS }, (_, rank) => `user-${String(rank + 1).padStart(2, "0")}`);

export const trace: Scenario = {
  name: "trace",
  summary:
    "a recorded trace (TIMESTAMP,ContextTokens,GeneratedTokens), its requests given to 50 users by Zipf(1.1)",
  rules: someUserRules("fifo", "round-robin"),
  metrics: {
    waitP50: "median wait over all requests, s",
    waitP99: "99th percentile of it, s",
    heaviestP50: "median wait of the user who sends most, s",
    heaviestP99: "99th percentile of it, s",
    othersP50: "median over the other users of their median wait, s",
    othersP99: "median over the other users of their 99th percentile, s",
    worstOtherP99: "the highest 99th percentile of any other user, s",
    jain: "Jain's index of grants over entitlement while two or more users wait",
    agents: "agents there are",
  },
  better: {
    waitP50: "lower",
    waitP99: "lower",
    heaviestP50: "lower",
    heaviestP99: "lower",
    othersP50: "lower",
    othersP99: "lower",
    worstOtherP99: "lower",
    jain: "higher",
  },
  tasks: 20_000,
  needsTrace: true,
  run(init: RunInit): RunResult {
    const workload = workloadOf(init);
    const log = runTasks(workload, dispatcherOf(workload, init, SECOND_MS));
    return {
      metrics: { ...figuresOf(log), agents: workload.agents.length },
      ...(init.wantsTimeline ? { timeline: timelineOf(log, "s", SECOND_MS) } : {}),
    };
  },
};

function workloadOf({ trace: requests, random }: RunInit): Workload {
  if (requests === undefined || requests.length < 2) {
    throw new InvalidValueError("a trace has two requests or more", { field: "FILE" });
  }
  const nextUser = random.split("tenants").zipf(USERS, ZIPF_EXPONENT);
  const tasks = requests.map(
    ({ arrivesAt, contextTokens, generatedTokens }, index): SimTask => ({
      index,
      arrivesAt,
      user: users[nextUser()] as string,
      project: "trace",
      kind: "request",
      weight: Math.max(1, contextTokens / 1_000),
      size: contextTokens * READ_MS_PER_TOKEN + generatedTokens * WRITE_MS_PER_TOKEN,
    }),
  );
  return {
    agents: Array.from({ length: agentsFor(requests, tasks) }, (_, index) => ({
      index,
      maxConcurrent: 1,
      kinds: ["request"],
    })),
    tasks,
    attemptsMax: 1,
    attemptOf: ({ task }) => ({ ms: task.size, succeeds: true }),
  };
}

function agentsFor(requests: readonly TraceRequest[], tasks: readonly SimTask[]): number {
  const workMs = tasks.reduce((sum, { size }) => sum + size, 0);
  const spanMs = Math.max(1, requests.at(-1)?.arrivesAt ?? 1);
  return Math.min(1_000, Math.max(1, Math.round(workMs / spanMs / BUSY)));
}

function figuresOf(log: Log): Metrics {
  const byUser = new Map<string, Log["tasks"][number][]>();
  for (const row of log.tasks) {
    const rows = byUser.get(row.task.user);
    if (rows === undefined) byUser.set(row.task.user, [row]);
    else rows.push(row);
  }
  const heaviest = users[0] as string;
  const waitOf = (rows: Log["tasks"], share: number) => percentileOf(waitsMsOf(rows), share) / SECOND_MS;
  const others = [...byUser].filter(([user]) => user !== heaviest).map(([, rows]) => rows);
  const othersP99 = others.map((rows) => waitOf(rows, 0.99));
  return {
    waitP50: waitOf(log.tasks, 0.5),
    waitP99: waitOf(log.tasks, 0.99),
    heaviestP50: waitOf(byUser.get(heaviest) ?? [], 0.5),
    heaviestP99: waitOf(byUser.get(heaviest) ?? [], 0.99),
    othersP50: percentileOf(
      others.map((rows) => waitOf(rows, 0.5)),
      0.5,
    ),
    othersP99: percentileOf(othersP99, 0.5),
    worstOtherP99: maximumOf(othersP99),
    jain: contendedJain(log),
  };
}
