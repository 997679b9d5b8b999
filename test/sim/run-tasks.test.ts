// Virtual time: the order of events at one instant, where a task waits, and the log.

import { describe, expect, it } from "vitest";
import { checkAfterTurn } from "../../src/core/invariants.ts";
import { projectId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { firstAgent, leastInFlight } from "../../src/sim/policy/agent-choices.ts";
import { EarlyBinding, LateBinding } from "../../src/sim/policy/binding.ts";
import type { Dispatcher, SimTask } from "../../src/sim/policy/dispatcher.ts";
import { contendedJain } from "../../src/sim/policy/figures.ts";
import { Production } from "../../src/sim/policy/production.ts";
import { type AttemptPlan, runTasks, type Workload } from "../../src/sim/policy/run-tasks.ts";
import { SeededRandom } from "../../src/sim/random.ts";
import { defaultProjectSettings } from "../../src/state/state.ts";

function tasks(...arrivals: readonly (readonly [at: number, user: string])[]): SimTask[] {
  return arrivals.map(([arrivesAt, user], index) => ({
    index,
    arrivesAt,
    user,
    project: "p",
    kind: "k",
    weight: 1,
    size: 1,
  }));
}

function workload(overrides: Partial<Workload> = {}): Workload {
  return {
    agents: [
      { index: 0, maxConcurrent: 1, kinds: ["k"] },
      { index: 1, maxConcurrent: 1, kinds: ["k"] },
    ],
    tasks: tasks([0, "u"], [0, "u"], [0, "u"]),
    attemptsMax: 1,
    attemptOf: (): AttemptPlan => ({ ms: 10, succeeds: true }),
    ...overrides,
  };
}

const binding = ({ agents, attemptsMax }: Workload) => ({ agents, attemptsMax, choose: firstAgent });

const dispatchers: readonly (readonly [string, (of: Workload) => Dispatcher])[] = [
  ["late binding", (of) => new LateBinding(binding(of))],
  ["early binding", (of) => new EarlyBinding({ ...binding(of), choose: leastInFlight })],
  ["production", (of) => new Production({ ...of, jitter: new SeededRandom("jitter") })],
];

describe.each(dispatchers)("under %s", (_, dispatcherOf) => {
  it("an agent that joins late is given nothing before, and what waits then", () => {
    const load = workload({
      agents: [
        { index: 0, maxConcurrent: 1, kinds: ["k"] },
        { index: 1, maxConcurrent: 1, kinds: ["k"], joinsAt: 15 },
      ],
      tasks: tasks([0, "u"], [11, "u"], [15, "u"]),
    });
    const log = runTasks(load, dispatcherOf(load));
    expect(log.attempts.map(({ agent, startedAt }) => [agent.index, startedAt])).toEqual([
      [0, 0],
      [0, 11],
      [1, 15],
    ]);
  });

  it("capacity freed at an instant serves a task that arrives at the same instant", () => {
    const load = workload({ tasks: tasks([0, "u"], [0, "u"], [10, "u"]) });
    const log = runTasks(load, dispatcherOf(load));
    expect(log.tasks.map(({ startedAt, endedAt }) => [startedAt, endedAt])).toEqual([
      [0, 10],
      [0, 10],
      [10, 20],
    ]);
    expect(log.endedAt).toBe(20);
  });

  it("nothing begins at the end of the time there is", () => {
    const load = workload({ untilMs: 10 });
    const log = runTasks(load, dispatcherOf(load));
    expect(log.tasks.map(({ startedAt }) => startedAt)).toEqual([0, 0, undefined]);
  });

  it("a failed attempt is tried again until none is left", () => {
    const load = workload({
      tasks: tasks([0, "u"], [0, "u"]),
      attemptsMax: 3,
      attemptOf: ({ task }, attempt) => ({ ms: 10, succeeds: task.index === 0 && attempt === 2 }),
    });
    const log = runTasks(load, dispatcherOf(load));
    expect(log.tasks.map(({ succeeded, attempts }) => [succeeded, attempts])).toEqual([
      [true, 2],
      [false, 3],
    ]);
    expect(log.attempts.length).toBe(5);
  });
});

it("the attempts of a dying agent end with the agent, and run elsewhere", () => {
  const load = workload({
    tasks: tasks([0, "u"], [0, "u"]),
    attemptsMax: 2,
  });
  const [agent] = load.agents;
  const deaths = agent === undefined ? [] : [{ at: 4, agent }];
  const log = runTasks({ ...load, deaths }, new Production({ ...load, jitter: new SeededRandom("jitter") }));
  expect(log.lost).toBe(1);
  expect(log.tasks.map(({ succeeded, attempts, endedAt }) => [succeeded, attempts, endedAt])).toEqual(
    expect.arrayContaining([
      [true, 2, 20],
      [true, 1, 10],
    ]),
  );
});

it("the production state keeps every invariant while it is driven", () => {
  const load = workload({
    tasks: tasks(...Array.from({ length: 40 }, (_, n) => [n * 3, `u${n % 3}`] as const)),
    attemptsMax: 2,
    attemptOf: ({ task }, attempt) => ({ ms: 7, succeeds: task.index % 5 !== 0 || attempt === 2 }),
  });
  const production = new Production({ ...load, jitter: new SeededRandom("jitter") });
  let turns = 0;
  runTasks(load, {
    ended: (end) => production.ended(end),
    submitted: (task) => production.submitted(task),
    dueAt: () => production.dueAt(),
    plan: (at) => {
      const assignments = production.plan(at);
      expect(checkAfterTurn(production.state)).toEqual([]);
      turns += 1;
      return assignments;
    },
  });
  expect(turns).toBeGreaterThan(40);
  expect(production.state.counts.completed).toBe(40);
});

describe("a simulated swarm does not stand still while time alone may move it", () => {
  const once = { index: 0, maxConcurrent: 1, kinds: ["k"] };

  it("a budget's window rolls on", () => {
    const load = workload({
      agents: [once],
      tasks: tasks([0, "u"], [0, "u"]).map((task) => ({ ...task, tokens: 60 })),
      attemptOf: () => ({ ms: 10, succeeds: true, tokens: 60 }),
    });
    const budget = { tokens: 100, windowMs: 60_000, mode: "wait" } as const;
    const settings = { ...defaultProjectSettings, budget };
    const configured = { type: "ProjectConfigured", project: projectId("p"), settings } as const;
    const jitter = new SeededRandom("jitter");
    const log = runTasks(load, new Production({ ...load, jitter, settings: [configured] }));
    expect(log.tasks.map(({ succeeded }) => succeeded)).toEqual([true, true]);
    const [, second] = log.tasks;
    expect(second?.startedAt).toBeGreaterThanOrEqual(60_000);
    expect(second?.startedAt).toBeLessThanOrEqual(61_010);
  });

  it("a suspended agent's back-off ends while the other one is busy for good", () => {
    const load = workload({
      agents: [once, { ...once, index: 1 }],
      tasks: tasks(...Array.from({ length: 60 }, (_, n) => [n, "u"] as const)),
      attemptsMax: 100,
      attemptOf: ({ agent }, _, at) =>
        agent.index === 0
          ? { ms: 1, succeeds: at > limits.suspendMs }
          : { ms: at < 200 ? 10 : 1e12, succeeds: true },
      untilMs: 1e9,
    });
    const production = new Production({ ...load, jitter: new SeededRandom("jitter") });
    const log = runTasks(load, production);
    const [probe, ...others] = log.attempts.filter(
      ({ agent, startedAt }) => agent.index === 0 && startedAt > 1_000,
    );
    expect(probe?.startedAt).toBeGreaterThanOrEqual(limits.suspendMs);
    expect(probe?.startedAt).toBeLessThan(limits.suspendMs + 1_000);
    expect(others.length).toBeGreaterThan(0);
  });
});

describe("early binding", () => {
  it("keeps tasks beyond the capacity in the agent's queue", () => {
    const load = workload({
      attemptOf: ({ agent }) => ({ ms: agent.index === 0 ? 100 : 10, succeeds: true }),
    });
    const log = runTasks(load, new EarlyBinding({ ...binding(load), choose: leastInFlight }));
    // The third task went to the first agent, which is slow, although the second agent is free at 10.
    expect(log.tasks[2]?.startedAt).toBe(100);
    expect([log.assignments, log.assignmentsAbove]).toEqual([3, 1]);
  });
});

describe("service while contended", () => {
  const one = workload({ agents: [{ index: 0, maxConcurrent: 1, kinds: ["k"] }] });

  it("is even where users take turns, although one had the agent to itself before", () => {
    const load = { ...one, tasks: tasks([0, "a"], [1, "a"], [11, "b"], [12, "a"], [12, "b"]) };
    expect(contendedJain(runTasks(load, new LateBinding(binding(load))))).toBe(1);
  });

  it("is 1/n if one of n gets all service", () => {
    const load = {
      ...one,
      untilMs: 45,
      tasks: tasks(...Array<[number, string]>(9).fill([0, "a"]), [0, "b"]),
    };
    expect(contendedJain(runTasks(load, new LateBinding(binding(load))))).toBe(0.5);
  });
});
