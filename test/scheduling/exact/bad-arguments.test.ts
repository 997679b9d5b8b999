// The package's exported scheduling rules, with arguments unseen by any type checker: refused with the field's name.
// They never compute a result, and never throw an error of the language.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  assignTaskToBestAgent,
  BudgetManager,
  collectSwarmMetrics,
  LucioScheduler,
  loads,
  planSnapshot,
  priorityScore,
  RateLimitWindow,
  SharedResource,
  SlidingWindow,
  schedule,
  vaporaLoad,
  vaporaScore,
} from "../../../src/rules.ts";
import { vaporaLoad as plannersLoad, vaporaScore as plannersScore } from "../../../src/scheduling/score.ts";

const nan = Number.NaN;
const infinity = Number.POSITIVE_INFINITY;
const queue = { queueDepth: 3, oldestAge: 1 };
const terms = { successRate: 0.9, inFlight: 1, maxConcurrent: 2 };
const agent = { id: "a", status: "ready", ...terms };
const rate = { agentType: "claude", limitType: "per_minute", maxTokens: 10 };
const snapshot = {
  projects: [{ id: "p", creditWeight: 1, status: "active", budgetLimit: null, maxConcurrentAgents: 1 }],
  tasks: [{ id: "t", projectId: "p", status: "ready", priority: 1 }],
  agents: [{ id: "a", state: "idle" }],
  projectTokenUsage: {},
  projectActiveAgentCounts: {},
  tasksCompletedInWindow: {},
  globalBudget: null,
  globalTokensUsed: 0,
};

/** As a program without types would call it. */
function any(value: unknown): never {
  return value as never;
}

function anyResource() {
  return new SharedResource({ capacity: 1, alpha: 0 });
}

function anyWindow() {
  return new SlidingWindow({ windowMs: 1_000, maxTokens: 0 });
}

type Case = readonly [field: string, name: string, act: () => unknown];

const cases: readonly Case[] = [
  ["alpha", "loads, 7", () => loads([queue], 7)],
  ["alpha", "loads, NaN", () => loads([queue], nan)],
  ["alpha", "loads, none", () => loads([queue], any(undefined))],
  ["alpha", "loads of nobody", () => loads([], -0.1)],
  ["queues", "loads", () => loads(any(undefined), 0.5)],
  ["queues[1]", "loads", () => loads([queue, any(null)], 0.5)],
  ["queues[0].queueDepth", "loads", () => loads([{ ...queue, queueDepth: nan }], 0.5)],
  ["queues[1].oldestAge", "loads", () => loads([queue, { ...queue, oldestAge: -1 }], 0.5)],

  ["options", "SharedResource", () => new SharedResource(any(undefined))],
  ["capacity", "SharedResource", () => new SharedResource({ capacity: 0, alpha: 0 })],
  ["alpha", "SharedResource", () => new SharedResource(any({ capacity: 1 }))],
  ["maxWaiters", "SharedResource, NaN", () => new SharedResource({ capacity: 1, alpha: 0, maxWaiters: nan })],
  ["maxWaiters", "SharedResource, -1", () => new SharedResource({ capacity: 1, alpha: 0, maxWaiters: -1 })],
  ["agent", "submit", () => anyResource().submit(any(undefined), 1)],
  ["weight", "submit", () => anyResource().submit("a", infinity)],

  ["terms", "vaporaScore", () => vaporaScore(any(undefined))],
  ["successRate", "vaporaScore", () => vaporaScore({ ...terms, successRate: nan })],
  ["inFlight", "vaporaScore", () => vaporaScore({ ...terms, inFlight: -1 })],
  ["terms", "vaporaLoad", () => vaporaLoad(any([]))],
  ["maxConcurrent", "vaporaLoad", () => vaporaLoad({ ...terms, maxConcurrent: 0 })],
  ["agents[0].status", "assignTask", () => assignTaskToBestAgent(any([{ ...agent, status: "Offline" }]))],
  ["agents[0].status", "metrics", () => collectSwarmMetrics(any([{ ...agent, status: undefined }]))],
  ["agents[0].id", "assignTask", () => assignTaskToBestAgent(any([{ ...agent, id: undefined }]))],
  ["agents[0].successRate", "metrics", () => collectSwarmMetrics(any([{ ...agent, successRate: "1" }]))],
  ["agents[1]", "assignTask", () => assignTaskToBestAgent(any([agent, null]))],
  ["agents", "assignTask", () => assignTaskToBestAgent(any({}))],
  ["role", "assignTask", () => assignTaskToBestAgent(any([agent]), any(7))],

  ["taskWeight", "priorityScore", () => priorityScore(nan, 2, 1)],
  ["now", "priorityScore", () => priorityScore(1, any(undefined), 1)],
  ["lastScheduledAt", "priorityScore", () => priorityScore(1, 2, nan)],
  ["task", "LucioScheduler", () => new LucioScheduler(1).submit(any(undefined))],
  ["user", "LucioScheduler", () => new LucioScheduler(1).submit(any({ id: "t", taskWeight: 1 }))],

  ["options", "RateLimitWindow", () => new RateLimitWindow(any(undefined), 0)],
  ["agentType", "RateLimitWindow", () => new RateLimitWindow(any({ ...rate, agentType: 1 }), 0)],
  ["now", "secondsUntilReset", () => new RateLimitWindow(rate, 0).secondsUntilReset(any(undefined))],
  ["now", "isExceeded", () => new RateLimitWindow(rate, 0).isExceeded(nan)],
  ["options", "SlidingWindow", () => new SlidingWindow(any(undefined))],
  ["now", "usedAt", () => anyWindow().usedAt(nan)],
  ["now", "isExceeded", () => anyWindow().isExceeded(any(undefined))],
  ["now", "freeAt", () => anyWindow().freeAt(-1)],

  ["weights", "BudgetManager", () => new BudgetManager().calculateTargetRatios(any(undefined))],
  ["usage", "BudgetManager", () => new BudgetManager().calculateDeficits({}, any([]))],
  ["totalUsed", "BudgetManager", () => new BudgetManager(5).isGlobalBudgetExhausted(nan)],
  ["projectUsed", "BudgetManager", () => new BudgetManager().isProjectBudgetExhausted(any("9"), 5)],
  ["budgetLimit", "BudgetManager", () => new BudgetManager().isProjectBudgetExhausted(9, any(undefined))],
];

const snapshotCases: readonly (readonly [field: string, value: unknown])[] = [
  ["snapshot", undefined],
  ["projects", {}],
  ["projects[0]", { ...snapshot, projects: ["p"] }],
  ["projects[0].status", { ...snapshot, projects: [{ ...snapshot.projects[0], status: 1 }] }],
  [
    "projects[0].budgetLimit",
    { ...snapshot, projects: [{ ...snapshot.projects[0], budgetLimit: undefined }] },
  ],
  ["tasks", { ...snapshot, tasks: undefined }],
  ["tasks[0].id", { ...snapshot, tasks: [{ ...snapshot.tasks[0], id: 7 }] }],
  ["agents", { ...snapshot, agents: null }],
  ["agents[0].id", { ...snapshot, agents: [{ state: "idle" }] }],
  ["projectTokenUsage", { ...snapshot, projectTokenUsage: undefined }],
  ["tasksCompletedInWindow.p", { ...snapshot, tasksCompletedInWindow: { p: "1" } }],
  ["globalBudget", { ...snapshot, globalBudget: undefined }],
];

function refusalOf(field: string) {
  return expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field });
}

describe("what the package exports refuses", () => {
  it.each(cases)("a bad %s: %s", (field, _, act) => {
    expect(act).toThrow(refusalOf(field));
  });

  it.each(snapshotCases)("a snapshot by either rules: %s", (field, value) => {
    expect(() => schedule(any(value))).toThrow(refusalOf(field));
    expect(() => planSnapshot(any(value))).toThrow(refusalOf(field));
  });
});

describe("what the package exports answers", () => {
  it("is for good terms what the planner computes", () => {
    const good = fc.record({
      successRate: fc.double({ min: 0, max: 1, noNaN: true }),
      inFlight: fc.nat(99),
      maxConcurrent: fc.integer({ min: 1, max: 99 }),
    });
    fc.assert(
      fc.property(good, (given) => {
        expect(vaporaScore(given)).toBe(plannersScore(given));
        expect(vaporaLoad(given)).toBe(plannersLoad(given));
      }),
    );
  });

  it("takes the bounds themselves", () => {
    expect(loads([queue], 1)).toEqual([1]);
    expect(loads([], 0)).toEqual([]);
    expect(vaporaScore({ successRate: 0, inFlight: 0, maxConcurrent: 1 })).toBe(0);
    expect(priorityScore(2, 5, undefined)).toBe(10);
    expect(schedule(snapshot)).toEqual([{ agentId: "a", taskId: "t", projectId: "p" }]);
    expect(planSnapshot(snapshot)).toEqual(schedule(snapshot));
  });
});
