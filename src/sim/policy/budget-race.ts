// One project with a budget, and many assignments before the costs of earlier tasks are known. Meanwhile agents
// die, and their reservations must be returned. Waggle's rule reserves; the rival checks before and charges
// after.

import { instant, projectId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { budgetRoom } from "../../scheduling/gates.ts";
import type { Event } from "../../state/event.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";
import { Production } from "./production.ts";
import { runTasks, type Workload } from "./run-tasks.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";

const SECOND_MS = 1_000;
const AGENTS = 8;
const MAX_CONCURRENT = 16;
const AT_ONCE = 64;
const LATER = 64;
const ESTIMATE = 1_000;
/** Three quarters of the sum of all estimates. */
const LIMIT = 96 * ESTIMATE;
const ATTEMPTS = 3;
const DEATHS = 2;
const PROJECT = "p";
/** Ends before any use leaves the window, so the budget applies once. */
const UNTIL_MS = 3_600_000;
const budget = { tokens: LIMIT, windowMs: 24 * 3_600_000, mode: "wait" } as const;

/** A dispatcher that reports its budget. */
interface Budgeted extends Dispatcher {
  /** Spent and reserved, tokens. */
  committed(at: number): number;
  reserved(): number;
}

class Reserving implements Budgeted {
  readonly #production: Production;

  constructor({ agents, attemptsMax }: Workload, { random }: RunInit) {
    const settings: Event = {
      type: "ProjectConfigured",
      project: projectId(PROJECT),
      settings: { creditWeight: 1, queueMax: limits.queuedTasksPerProjectMax, budget },
    };
    this.#production = new Production({
      agents,
      attemptsMax,
      settings: [settings],
      jitter: random.split("jitter"),
    });
  }

  ended(end: AttemptEnd): void {
    this.#production.ended(end);
  }

  died(agent: SimAgent): void {
    this.#production.died(agent);
  }

  submitted(task: SimTask): void {
    this.#production.submitted(task);
  }

  plan(at: number): readonly Assignment[] {
    return this.#production.plan(at);
  }

  dueAt(): number | undefined {
    return this.#production.dueAt();
  }

  committed(at: number): number {
    const ledger = this.#production.state.projectById.get(projectId(PROJECT))?.ledger;
    return ledger === undefined ? 0 : LIMIT - budgetRoom(ledger, budget, instant(at));
  }

  reserved(): number {
    return this.#production.state.projectById.get(projectId(PROJECT))?.ledger.reserved ?? 0;
  }
}

/** Assigns while spending is below the limit, and charges a task's use at its end. */
class CheckingBefore implements Budgeted {
  readonly #held = new Map<SimAgent, SimTask[]>();
  readonly #waiting: SimTask[] = [];
  readonly #attempts = new Map<SimTask, number>();
  #spent = 0;

  constructor({ agents }: Workload) {
    for (const agent of agents) this.#held.set(agent, []);
  }

  ended({ task, agent, tokens = 0 }: AttemptEnd): void {
    const held = this.#held.get(agent) ?? [];
    held.splice(held.indexOf(task), 1);
    this.#spent += tokens;
  }

  died(agent: SimAgent): void {
    const lost = this.#held.get(agent) ?? [];
    this.#held.delete(agent);
    this.#waiting.push(...lost.filter((task) => (this.#attempts.get(task) ?? 0) < ATTEMPTS));
  }

  submitted(task: SimTask): void {
    this.#waiting.push(task);
  }

  plan(): readonly Assignment[] {
    const assignments: Assignment[] = [];
    while (this.#spent + ESTIMATE <= LIMIT) {
      const free = [...this.#held].find(([agent, held]) => held.length < agent.maxConcurrent);
      const task = free === undefined ? undefined : this.#waiting.shift();
      if (free === undefined || task === undefined) break;
      const [agent, held] = free;
      held.push(task);
      this.#attempts.set(task, (this.#attempts.get(task) ?? 0) + 1);
      assignments.push({ task, agent });
    }
    return assignments;
  }

  dueAt(): undefined {
    return undefined;
  }

  committed(): number {
    const inFlight = [...this.#held.values()].reduce((sum, held) => sum + held.length, 0);
    return this.#spent + inFlight * ESTIMATE;
  }

  reserved(): number {
    return 0;
  }
}

function workloadOf({ random }: RunInit): Workload {
  const costs = random.split("costs");
  const sizes = random.split("sizes");
  const deaths = random.split("deaths");
  const agents = Array.from({ length: AGENTS }, (_, index) => ({
    index,
    maxConcurrent: MAX_CONCURRENT,
    kinds: ["call"],
  }));
  const tasks = Array.from(
    { length: AT_ONCE + LATER },
    (_, index): SimTask => ({
      index,
      // Later tasks arrive one by one, each in a separate round, before the first have ended.
      arrivesAt: Math.max(0, index - AT_ONCE + 1) * 50,
      user: "u",
      project: PROJECT,
      kind: "call",
      weight: 1,
      size: 5 + sizes.exponential(5),
      tokens: ESTIMATE,
    }),
  );
  const dying = new Set<SimAgent>();
  while (dying.size < DEATHS) dying.add(deaths.pick(agents));
  return {
    agents,
    tasks,
    attemptsMax: ATTEMPTS,
    untilMs: UNTIL_MS,
    deaths: [...dying]
      .map((agent) => ({ agent, at: 1 + deaths.below(15 * SECOND_MS) }))
      .sort((a, b) => a.at - b.at),
    attemptOf: ({ task }, attempt) => ({
      ms: task.size * SECOND_MS,
      succeeds: true,
      tokens: Math.round(ESTIMATE * (0.5 + costs.split(`${task.index}.${attempt}`).fraction())),
    }),
  };
}

export const budgetRace: Scenario = {
  name: "budget-race",
  summary:
    "a budget for 96 of 128 tasks, 64 assigned at once and more while results are out; two of 8 agents die",
  rules: {
    waggle: "ours: reserves at the assignment, settles at the end (mode wait)",
    "check-then-charge": "assigns while the next estimate fits what is spent, charges at the end",
  },
  metrics: {
    over: "most by which spent and in flight exceeded the limit at an assignment, tokens; the limit is 96,000",
    spentOver:
      "by how much what was spent in the end exceeds it, tokens; a task may use more than its estimate",
    reservedAtEnd: "held back when nothing runs any more, tokens",
    completed: "tasks completed, of 128",
    lost: "attempts that died with their agent",
  },
  better: { over: "lower", spentOver: "lower", reservedAtEnd: "lower" },
  tasks: AT_ONCE + LATER,
  charted: {
    over: { title: "Above the limit at an assignment", axis: "tokens" },
    spentOver: { title: "Above the limit in the end", axis: "tokens" },
    completed: { title: "Completed", axis: "tasks" },
  },
  run(init: RunInit): RunResult {
    const workload = workloadOf(init);
    const inner: Budgeted =
      init.rule === "waggle" ? new Reserving(workload, init) : new CheckingBefore(workload);
    let most = 0;
    const log = runTasks(workload, {
      ended: (end, at) => inner.ended(end, at),
      died: (agent, at) => inner.died?.(agent, at),
      submitted: (task, at) => inner.submitted(task, at),
      dueAt: () => inner.dueAt(),
      plan: (at) => {
        const assignments = inner.plan(at);
        // A round only assigns, so the committed sum only grows: its maximum is at the end of the round.
        if (assignments.length > 0) most = Math.max(most, inner.committed(at));
        return assignments;
      },
    });
    const reserved = inner.reserved();
    return {
      metrics: {
        over: Math.max(0, most - LIMIT),
        spentOver: Math.max(0, inner.committed(log.endedAt) - reserved - LIMIT),
        reservedAtEnd: reserved,
        completed: log.tasks.filter(({ succeeded }) => succeeded).length,
        lost: log.lost,
      },
    };
  },
};
