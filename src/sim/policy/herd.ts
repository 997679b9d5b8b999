// The effect of stale knowledge: four deciders that see the assignments of the rest only in reports, against a
// single decider that counts its own. An assignment above capacity waits in an agent's own queue, although a
// different agent may be free.

import type { SeededRandom } from "../random.ts";
import { leastInFlight } from "./agent-choices.ts";
import { EarlyBinding } from "./binding.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";
import { drawTasks } from "./draw-tasks.ts";
import { sojournsMsOf, waitsMsOf } from "./figures.ts";
import { Production } from "./production.ts";
import { runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";
import { meanOf, percentileOf } from "./statistics.ts";

const SECOND_MS = 1_000;
const TASKS = 20_000;
const AGENTS = 16;
const MAX_CONCURRENT = 4;
const DECIDERS = 4;
const REPORT_AGE_MS = 1_000;

interface Change {
  readonly at: number;
  readonly agent: number;
  readonly by: 1 | -1;
  /** The decider that assigned; undefined for an end. */
  readonly decider?: number;
}

/** Deciders with outdated knowledge of the agents' load. Each task goes to a random decider. */
class StaleDeciders implements Dispatcher {
  readonly #agents: readonly SimAgent[];
  readonly #lot: SeededRandom;
  readonly #countsOwn: boolean;
  /** In flight by agent, as reported. */
  readonly #reported: number[];
  /** Changes since the report. */
  #unreported: Change[] = [];
  #bound: Assignment[] = [];

  constructor(agents: readonly SimAgent[], lot: SeededRandom, options: { readonly countsOwn: boolean }) {
    this.#agents = agents;
    this.#lot = lot;
    this.#countsOwn = options.countsOwn;
    this.#reported = agents.map(() => 0);
  }

  ended({ agent }: AttemptEnd, at: number): void {
    this.#unreported.push({ at, agent: agent.index, by: -1 });
  }

  submitted(task: SimTask, at: number): void {
    this.#hear(at);
    const decider = this.#lot.below(DECIDERS);
    const seen = [...this.#reported];
    if (this.#countsOwn) {
      for (const change of this.#unreported) {
        if (change.decider === decider) seen[change.agent] = (seen[change.agent] ?? 0) + 1;
      }
    }
    const least = Math.min(...seen);
    const agent = this.#lot.pick(this.#agents.filter(({ index }) => seen[index] === least));
    this.#unreported.push({ at, agent: agent.index, by: 1, decider });
    this.#bound.push({ task, agent });
  }

  plan(): readonly Assignment[] {
    const bound = this.#bound;
    this.#bound = [];
    return bound;
  }

  dueAt(): undefined {
    return undefined;
  }

  #hear(at: number): void {
    let heard = 0;
    for (const change of this.#unreported) {
      if (change.at > at - REPORT_AGE_MS) break;
      this.#reported[change.agent] = (this.#reported[change.agent] ?? 0) + change.by;
      heard += 1;
    }
    if (heard > 0) this.#unreported = this.#unreported.slice(heard);
  }
}

function dispatcherOf({ agents, attemptsMax }: Workload, { rule, random }: RunInit): Dispatcher {
  switch (rule) {
    case "four-deciders":
      return new StaleDeciders(agents, random.split("lot"), { countsOwn: true });
    case "four-blind-deciders":
      return new StaleDeciders(agents, random.split("lot"), { countsOwn: false });
    case "one-decider":
      return new EarlyBinding({ agents, attemptsMax, choose: leastInFlight });
    default:
      return new Production({ agents, attemptsMax, jitter: random.split("jitter") });
  }
}

export const herd: Scenario = {
  name: "herd",
  summary: "16 agents of capacity 4 at 80 % load: four deciders with reports 1 s old against one",
  rules: {
    waggle: "ours: one planner, bound late",
    "one-decider": "one decider that counts its own assignments, least in flight, bound at once",
    "four-deciders": "four deciders that know the reports and what each assigned itself since",
    "four-blind-deciders": "four deciders that know the reports alone",
  },
  metrics: {
    above: "share of the assignments to an agent that was full",
    waitMean: "mean time until a task began, s",
    p99: "99th percentile of the time in system, s",
  },
  better: { above: "lower", waitMean: "lower", p99: "lower" },
  tasks: TASKS,
  charted: {
    above: { title: "Assigned to a full agent", axis: "share of the assignments" },
    p99: { title: "Time in system", axis: "99th percentile, s" },
  },
  run(init: RunInit): RunResult {
    const tasks = drawTasks({
      count: Math.round(TASKS * init.share),
      everyMs: SECOND_MS / (0.8 * AGENTS * MAX_CONCURRENT),
      random: init.random,
      kindOf: () => "call",
    });
    const workload: Workload = {
      agents: Array.from({ length: AGENTS }, (_, index) => ({
        index,
        maxConcurrent: MAX_CONCURRENT,
        kinds: ["call"],
      })),
      tasks,
      attemptsMax: 1,
      attemptOf: ({ task }) => ({ ms: task.size * SECOND_MS, succeeds: true }),
    };
    const log = runTasks(workload, dispatcherOf(workload, init));
    return {
      metrics: {
        above: log.assignmentsAbove / log.assignments,
        waitMean: meanOf(waitsMsOf(log.tasks)) / SECOND_MS,
        p99: percentileOf(sojournsMsOf(log.tasks), 0.99) / SECOND_MS,
      },
    };
  },
};
