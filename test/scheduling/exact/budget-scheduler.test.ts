// The budget scheduler, section by section.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schedule } from "../../../src/scheduling/exact/budget-scheduler.ts";
import type {
  BudgetSnapshot,
  SnapshotAgent,
  SnapshotProject,
  SnapshotTask,
} from "../../../src/scheduling/exact/budget-snapshot.ts";
import { literalSchedule } from "./literal-budget-scheduler.ts";

function aProject(overrides: Partial<SnapshotProject> = {}): SnapshotProject {
  return {
    id: "p",
    creditWeight: 1,
    status: "active",
    budgetLimit: null,
    maxConcurrentAgents: 10,
    ...overrides,
  };
}

function aTask(overrides: Partial<SnapshotTask> = {}): SnapshotTask {
  return { id: "t", projectId: "p", status: "ready", priority: 100, ...overrides };
}

function anAgent(overrides: Partial<SnapshotAgent> = {}): SnapshotAgent {
  return { id: "a", state: "idle", ...overrides };
}

function aSnapshot(overrides: Partial<BudgetSnapshot> = {}): BudgetSnapshot {
  return {
    projects: [aProject()],
    tasks: [aTask()],
    agents: [anAgent()],
    projectTokenUsage: {},
    projectActiveAgentCounts: {},
    tasksCompletedInWindow: {},
    globalBudget: null,
    globalTokensUsed: 0,
    ...overrides,
  };
}

/** Few values each, so that ties and repeated ids are common. */
const someSnapshot: fc.Arbitrary<BudgetSnapshot> = fc.record({
  projects: fc.array(
    fc.record({
      id: fc.constantFrom("p", "q", "r"),
      creditWeight: fc.constantFrom(0.5, 1, 1, 3),
      status: fc.constantFrom("active", "active", "paused"),
      budgetLimit: fc.option(fc.nat(20), { freq: 1 }),
      maxConcurrentAgents: fc.constantFrom(0, 1, 2, 4),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  tasks: fc.array(
    fc.record({
      id: fc.integer({ min: 0, max: 30 }).map((n) => `t${n}`),
      projectId: fc.constantFrom("p", "q", "r", "ghost"),
      status: fc.constantFrom("ready", "ready", "blocked"),
      priority: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 5, maxLength: 20, size: "max" },
  ),
  agents: fc.array(
    fc.record({
      id: fc.constantFrom("a", "b", "c", "d", "e"),
      state: fc.constantFrom("idle", "idle", "busy"),
    }),
    { minLength: 2, maxLength: 6, size: "max" },
  ),
  projectTokenUsage: fc.record({ p: fc.nat(12), q: fc.nat(12), gone: fc.nat(4) }),
  projectActiveAgentCounts: fc.record({ p: fc.nat(2), r: fc.nat(2) }),
  tasksCompletedInWindow: fc.record({ p: fc.nat(2), q: fc.nat(2) }),
  globalBudget: fc.option(fc.integer({ min: 5, max: 10 }), { freq: 1 }),
  globalTokensUsed: fc.nat(6),
});

function firstOfEach<Thing extends { readonly id: string }>(things: readonly Thing[]): Thing[] {
  return things.filter((thing, at) => things.findIndex(({ id }) => id === thing.id) === at);
}

/** Ids of tasks in the order of the actions. */
function tasksOf(snapshot: BudgetSnapshot): string[] {
  return schedule(snapshot).map(({ taskId }) => taskId);
}

describe("step by step", () => {
  const two = {
    projects: [aProject({ id: "p" }), aProject({ id: "q" })],
    tasks: [aTask({ id: "tp" }), aTask({ id: "tq", projectId: "q" })],
  };

  it.each<[string, Partial<BudgetSnapshot>, string[]]>([
    ["1: a global budget that is used up", { globalBudget: 10, globalTokensUsed: 10 }, []],
    ["1: one token left", { globalBudget: 10, globalTokensUsed: 9 }, ["t"]],
    ["1: a budget of 0", { globalBudget: 0 }, []],
    ["2: nobody idle", { agents: [anAgent({ state: "busy" })] }, []],
    ["3: nothing ready", { tasks: [aTask({ status: "blocked" })] }, []],
    [
      "4: lower priority value, then id as text",
      {
        tasks: [aTask({ id: "t-3" }), aTask({ id: "t-12" }), aTask({ id: "urgent", priority: 1 })],
        agents: ["a", "b", "c"].map((id) => anAgent({ id })),
      },
      ["urgent", "t-12", "t-3"],
    ],
    ["4: text by code points", { tasks: [aTask({ id: "\u{1f41d}" }), aTask({ id: "\uffee" })] }, ["\uffee"]],
    ["5: paused", { projects: [aProject({ status: "paused" })] }, []],
    ["5: tasks of a project nobody lists", { tasks: [aTask({ projectId: "ghost" })] }, []],
    ["7: an agent that is listed twice works once", { agents: [anAgent(), anAgent()] }, ["t"]],
  ])("%s", (_, overrides, tasks) => expect(tasksOf(aSnapshot(overrides))).toEqual(tasks));

  it.each<[string, Partial<BudgetSnapshot>, string]>([
    [
      "the guarantee before any deficit",
      { tasksCompletedInWindow: { p: 1 }, projectTokenUsage: { q: 9 } },
      "tq",
    ],
    ["the smaller share first", { projectTokenUsage: { p: 2, q: 1 } }, "tq"],
    ["equal keys in the snapshot's order", {}, "tp"],
    ["tokens of projects that are gone count in the total", { projectTokenUsage: { gone: 100, p: 1 } }, "tq"],
    ["2.6: budget used up", { projects: [aProject({ budgetLimit: 0 }), aProject({ id: "q" })] }, "tq"],
    ["2.6: concurrency used up", { projectActiveAgentCounts: { p: 10 } }, "tq"],
    ["2.6: concurrency 0", { projects: [aProject({ maxConcurrentAgents: 0 }), aProject({ id: "q" })] }, "tq"],
  ])("%s", (_, overrides, first) => {
    expect(tasksOf(aSnapshot({ ...two, ...overrides }))).toEqual([first]);
  });

  it("counts a round's assignments against the concurrency, and keeps the order of projects", () => {
    const snapshot = aSnapshot({
      projects: [aProject({ maxConcurrentAgents: 2 }), aProject({ id: "q" })],
      tasks: ["1", "2", "3"].flatMap((n) => [aTask({ id: `p${n}` }), aTask({ id: `q${n}`, projectId: "q" })]),
      agents: ["a", "b", "c"].map((id) => anAgent({ id })),
    });
    expect(tasksOf(snapshot)).toEqual(["p1", "p2", "q1"]);
  });

  it("accepts any name of a project", () => {
    const projects = ["constructor", "__proto__"].map((id) => aProject({ id }));
    const tasks = projects.map(({ id }) => aTask({ id: `of ${id}`, projectId: id }));
    const snapshot = aSnapshot({ projects, tasks, projectTokenUsage: JSON.parse('{"__proto__":5}') });
    expect(tasksOf({ ...snapshot, agents: [anAgent(), anAgent({ id: "b" })] })).toHaveLength(2);
    expect(tasksOf(snapshot)).toEqual(["of constructor"]);
  });

  it("equals the document read word by word, on 10,000 random snapshots, with repeated ids", () => {
    let actionCount = 0;
    fc.assert(
      fc.property(someSnapshot, (snapshot) => {
        const actions = schedule(snapshot);
        actionCount += actions.length;
        expect(actions).toEqual(literalSchedule(snapshot));
      }),
      { numRuns: 10_000 },
    );
    expect(actionCount).toBeGreaterThan(5_000);
  });

  it("assigns nothing twice and breaks no limit, for any snapshot", () => {
    const snapshots = someSnapshot.map((snapshot) => ({
      ...snapshot,
      projects: firstOfEach(snapshot.projects),
      tasks: firstOfEach(snapshot.tasks),
      agents: firstOfEach(snapshot.agents),
    }));
    fc.assert(
      fc.property(snapshots, (snapshot: BudgetSnapshot) => {
        const actions = schedule(snapshot);
        expect(new Set(actions.map(({ taskId }) => taskId)).size).toBe(actions.length);
        expect(new Set(actions.map(({ agentId }) => agentId)).size).toBe(actions.length);
        for (const { id, status, budgetLimit, maxConcurrentAgents } of snapshot.projects) {
          const got = actions.filter(({ projectId }) => projectId === id).length;
          const active = snapshot.projectActiveAgentCounts[id] ?? 0;
          if (got > 0) expect(status).toBe("active");
          if (got > 0) expect(active + got).toBeLessThanOrEqual(maxConcurrentAgents);
          if (got > 0 && budgetLimit !== null)
            expect(snapshot.projectTokenUsage[id] ?? 0).toBeLessThan(budgetLimit);
        }
        for (const { taskId, projectId } of actions) {
          const of = snapshot.tasks.find(({ id }) => id === taskId);
          expect(of).toMatchObject({ status: "ready", projectId });
        }
      }),
    );
  });
});

describe("inputs without an answer", () => {
  it("names the document's division by zero", () => {
    const snapshot = aSnapshot({ projects: [aProject({ creditWeight: 0 })] });
    expect(() => schedule(snapshot)).toThrow(
      expect.objectContaining({
        code: "WAGGLE_INVALID_VALUE",
        message: expect.stringMatching(/2\.5.*division by zero/),
      }),
    );
  });

  it("divides by nothing without eligible projects or idle agents", () => {
    const projects = [aProject({ creditWeight: 0 })];
    expect(schedule(aSnapshot({ projects, agents: [] }))).toEqual([]);
    expect(schedule(aSnapshot({ projects, tasks: [] }))).toEqual([]);
  });

  it.each<[string, Partial<BudgetSnapshot>]>([
    ["projects[0].creditWeight", { projects: [aProject({ creditWeight: Number.NaN })] }],
    ["projects[0].creditWeight", { projects: [aProject({ creditWeight: -1 })] }],
    ["projects[0].maxConcurrentAgents", { projects: [aProject({ maxConcurrentAgents: -1 })] }],
    ["projects[0].budgetLimit", { projects: [aProject({ budgetLimit: Number.NaN })] }],
    ["tasks[0].priority", { tasks: [aTask({ priority: Number.NaN })] }],
    ["projectTokenUsage.p", { projectTokenUsage: { p: Number.NaN } }],
    ["projectActiveAgentCounts.p", { projectActiveAgentCounts: { p: -1 } }],
    ["tasksCompletedInWindow.p", { tasksCompletedInWindow: { p: Number.POSITIVE_INFINITY } }],
    ["globalBudget", { globalBudget: -1 }],
    ["globalTokensUsed", { globalTokensUsed: Number.NaN }],
  ])("refuses a bad %s", (field, overrides) => {
    expect(() => schedule(aSnapshot(overrides))).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }),
    );
  });
});
