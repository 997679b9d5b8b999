// LOCO's five scenarios: clients that share one slot, with one task served per tick. Every task takes exactly a
// tick, so ticks equal completed units of work.

import type { SeededRandom } from "../random.ts";
import type { SimTask } from "./dispatcher.ts";
import { servedByUser, waitsMsOf } from "./figures.ts";
import { type Log, runTasks, type Workload } from "./run-tasks.ts";
import type { Metrics, RunInit, RunResult, Scenario } from "./scenario.ts";
import { jainOf, maximumOf, meanOf } from "./statistics.ts";
import { timelineOf } from "./timeline.ts";
import { dispatcherOf, someUserRules } from "./user-rules.ts";

/** One tick in virtual time, ms. */
const TICK_MS = 1_000;

interface Arrival {
  readonly tick: number;
  readonly client: string;
  readonly weight?: number;
}

interface Clients {
  readonly clients: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** Absent: until all tasks are served. */
  readonly ticks?: number;
}

interface LocoInit {
  readonly name: string;
  readonly summary: string;
  readonly metrics: Scenario["metrics"];
  readonly better: Scenario["better"];
  readonly tasks: number;
  /** Tick. */
  readonly focusAt?: number;
  draw(random: SeededRandom): Clients;
  figures(log: Log, clients: Clients): Metrics;
}

const rules = someUserRules("loco-starvation-limit", "fifo", "round-robin", "random", "window-usage");

function locoScenario({ draw, figures, focusAt, ...said }: LocoInit): Scenario {
  return {
    ...said,
    rules,
    run(init: RunInit): RunResult {
      const clients = draw(init.random.split("arrivals"));
      const workload = workloadOf(clients);
      const log = runTasks(workload, dispatcherOf(workload, init, TICK_MS));
      return {
        metrics: figures(log, clients),
        ...(init.wantsTimeline ? { timeline: timelineOf(log, "ticks", TICK_MS, focusAt) } : {}),
      };
    },
  };
}

function workloadOf({ arrivals, ticks }: Clients): Workload {
  const inOrder = [...arrivals].sort((a, b) => a.tick - b.tick);
  const tasks = inOrder.map(
    ({ tick, client, weight = 1 }, index): SimTask => ({
      index,
      arrivesAt: tick * TICK_MS,
      user: client,
      project: "loco",
      kind: "call",
      weight,
      size: 1,
    }),
  );
  return {
    agents: [{ index: 0, maxConcurrent: 1, kinds: ["call"] }],
    tasks,
    attemptsMax: 1,
    ...(ticks === undefined ? {} : { untilMs: ticks * TICK_MS }),
    attemptOf: () => ({ ms: TICK_MS, succeeds: true }),
  };
}

export const locoBurst = locoScenario({
  name: "loco-burst",
  summary: "8 clients, client i with i+1 tasks at tick 0",
  metrics: {
    served: "tasks served",
    ticks: "ticks until the last was served",
    jain: "Jain's index of each client's mean wait",
  },
  better: { ticks: "lower", jain: "higher" },
  tasks: 36,
  draw: () => {
    const clients = named("client", 8);
    const arrivals = clients.flatMap((client, at) =>
      Array.from({ length: at + 1 }, () => ({ tick: 0, client })),
    );
    return { clients, arrivals };
  },
  figures: (log, { clients }) => ({
    served: log.attempts.length,
    ticks: log.endedAt / TICK_MS,
    jain: jainOf(
      clients.map((client) => meanOf(waitsMsOf(log.tasks.filter(({ task }) => task.user === client)))),
    ),
  }),
});

const loadMetrics = {
  jain: "Jain's index of tasks served by client",
  neverServed: "clients that were never served, of 10",
  served: "tasks served in 500 ticks",
  waitMean: "mean wait of those served, ticks",
  waitMax: "longest wait of those served, ticks",
};

function loadScenario(name: string, summary: string, heavy: number, light: number): Scenario {
  const ticks = 500;
  return locoScenario({
    name,
    summary,
    metrics: loadMetrics,
    better: { jain: "higher", neverServed: "lower", served: "higher", waitMean: "lower", waitMax: "lower" },
    tasks: Math.round(ticks * 5 * (heavy + light)),
    draw: (random) => {
      const clients = named("client", 10);
      const arrivals: Arrival[] = [];
      for (let tick = 0; tick < ticks; tick += 1) {
        for (const [at, client] of clients.entries()) {
          const count = random.poisson(at < 5 ? heavy : light);
          for (let n = 0; n < count; n += 1) arrivals.push({ tick, client });
        }
      }
      return { clients, arrivals, ticks };
    },
    figures: (log, { clients }) => {
      const served = servedByUser(log, clients);
      const waits = waitsMsOf(log.tasks);
      return {
        jain: jainOf(served),
        neverServed: served.filter((count) => count === 0).length,
        served: log.attempts.length,
        waitMean: meanOf(waits) / TICK_MS,
        waitMax: maximumOf(waits) / TICK_MS,
      };
    },
  });
}

export const locoOverload = loadScenario(
  "loco-overload",
  "10 clients, 5 busy and 5 quiet; 2.5 tasks arrive a tick, 1 is served, 500 ticks",
  0.4,
  0.1,
);

export const locoSustainable = loadScenario(
  "loco-sustainable",
  "the same clients with 0.7 tasks a tick: all can be served",
  0.1,
  0.04,
);

const SPIKE_TICK = 30;
const SPIKE_TICKS = 250;

export const locoSpike = locoScenario({
  name: "loco-spike",
  summary: "10 background clients with heavy tasks; at tick 30 five webhooks come with one light task each",
  metrics: {
    spike: "ticks from tick 30 until a webhook is served, mean; one never served counts to the end",
    slowest: "the same of the slowest webhook",
    webhooksServed: "webhooks served, of 5",
    served: "tasks served in 250 ticks",
  },
  better: { spike: "lower", slowest: "lower", webhooksServed: "higher", served: "higher" },
  tasks: 220,
  focusAt: SPIKE_TICK,
  draw: (random) => {
    const background = named("background", 10);
    const webhooks = named("webhook", 5);
    const arrivals: Arrival[] = background.flatMap((client) =>
      Array.from({ length: 4 }, () => ({ tick: 0, client, weight: 2 })),
    );
    for (let tick = 1; tick < SPIKE_TICKS; tick += 1) {
      for (const client of background) {
        if (random.chance(0.07)) arrivals.push({ tick, client, weight: 2 });
      }
    }
    arrivals.push(...webhooks.map((client) => ({ tick: SPIKE_TICK, client })));
    return { clients: [...background, ...webhooks], arrivals, ticks: SPIKE_TICKS };
  },
  figures: (log) => {
    const webhooks = log.tasks.filter(({ task }) => task.user.startsWith("webhook"));
    const waits = webhooks.map(
      ({ startedAt }) => (startedAt ?? SPIKE_TICKS * TICK_MS) / TICK_MS - SPIKE_TICK,
    );
    return {
      spike: meanOf(waits),
      slowest: maximumOf(waits),
      webhooksServed: webhooks.filter(({ startedAt }) => startedAt !== undefined).length,
      served: log.attempts.length,
    };
  },
});

const PROVERS_TICK = 20;

export const locoMdash = locoScenario({
  name: "loco-mdash",
  summary:
    "20 auditors (weight 3), 30 debaters (weight 1); 5 provers (weight 5) come at tick 20; 2 tasks each",
  metrics: {
    proversServed: "provers that had their first task served, of 5",
    slowest: "ticks from tick 20 until the slowest prover's first task was served",
    slowestSecond: "the same of both tasks",
    served: "tasks served in 200 ticks, of 110",
  },
  better: { proversServed: "higher", slowest: "lower", slowestSecond: "lower", served: "higher" },
  tasks: 110,
  focusAt: PROVERS_TICK,
  draw: () => {
    const twice = (clients: readonly string[], tick: number, weight: number) =>
      clients.flatMap((client) => [0, 1].map(() => ({ tick, client, weight })));
    const auditors = named("auditor", 20);
    const debaters = named("debater", 30);
    const provers = named("prover", 5);
    return {
      clients: [...auditors, ...debaters, ...provers],
      arrivals: [...twice(auditors, 0, 3), ...twice(debaters, 0, 1), ...twice(provers, PROVERS_TICK, 5)],
      ticks: 200,
    };
  },
  figures: (log) => {
    const first = new Map<string, number>();
    const second = new Map<string, number>();
    for (const { task, startedAt = 200 * TICK_MS } of log.tasks) {
      if (!task.user.startsWith("prover")) continue;
      const ticks = startedAt / TICK_MS - PROVERS_TICK;
      if (first.has(task.user)) second.set(task.user, ticks);
      else first.set(task.user, ticks);
    }
    return {
      proversServed: [...first.values()].filter((ticks) => ticks < 200 - PROVERS_TICK).length,
      slowest: maximumOf(first.values()),
      slowestSecond: maximumOf(second.values()),
      served: log.attempts.length,
    };
  },
});

function named(what: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${what}-${at + 1}`);
}
