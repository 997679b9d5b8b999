// Waggle's rules on snapshots in the budget document's form.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BudgetSnapshot, SnapshotProject } from "../../src/scheduling/exact/budget-snapshot.ts";
import { planSnapshot } from "../../src/sim/policy/snapshot-plan.ts";

interface Overrides extends Partial<Omit<BudgetSnapshot, "projects">> {
  readonly projects?: readonly Partial<SnapshotProject>[];
}

/** Project p by default, one ready task each of p and q, one idle agent. */
function aSnapshot(overrides: Overrides = {}): BudgetSnapshot {
  return {
    tasks: ["p", "q"].map((project) => aTask(`t-${project}`, project)),
    agents: [{ id: "a", state: "idle" }],
    projectTokenUsage: {},
    projectActiveAgentCounts: {},
    tasksCompletedInWindow: {},
    globalBudget: null,
    globalTokensUsed: 0,
    ...overrides,
    projects: (overrides.projects ?? [{}]).map((project) => ({
      id: "p",
      creditWeight: 1,
      status: "active",
      budgetLimit: null,
      maxConcurrentAgents: 10,
      ...project,
    })),
  };
}

function aTask(id: string, projectId: string, priority = 100) {
  return { id, projectId, status: "ready", priority };
}

function idle(count: number) {
  return Array.from({ length: count }, (_, n) => ({ id: `a${n}`, state: "idle" }));
}

function tasksOf(snapshot: BudgetSnapshot): string[] {
  return planSnapshot(snapshot).map(({ taskId }) => taskId);
}

const both = [{ id: "p" }, { id: "q" }];
const many = ["1", "2", "3", "4"].flatMap((n) => [aTask(`p${n}`, "p"), aTask(`q${n}`, "q")]);

describe("planSnapshot", () => {
  it("assigns only active projects' ready tasks to idle agents", () => {
    const snapshot = aSnapshot({
      projects: [{ id: "p" }, { id: "q", status: "paused" }],
      tasks: [
        { ...aTask("blocked", "p"), status: "blocked" },
        aTask("t", "p"),
        aTask("of q", "q"),
        aTask("x", "ghost"),
      ],
      agents: [...idle(3), { id: "busy", state: "busy" }],
    });
    expect(planSnapshot(snapshot)).toEqual([{ agentId: "a0", taskId: "t", projectId: "p" }]);
  });

  it("takes a project's tasks by priority, then in the snapshot's order", () => {
    const tasks = [aTask("z", "p"), aTask("b", "p"), aTask("first", "p", 1)];
    expect(tasksOf(aSnapshot({ tasks, agents: idle(3) }))).toEqual(["first", "z", "b"]);
  });

  it.each<[string, Overrides, number]>([
    ["concurrency", { projects: [{ maxConcurrentAgents: 3 }], projectActiveAgentCounts: { p: 1 } }, 2],
    [
      "concurrency used up",
      { projects: [{ maxConcurrentAgents: 1 }], projectActiveAgentCounts: { p: 2 } },
      0,
    ],
    ["a concurrency of 0: closed", { projects: [{ maxConcurrentAgents: 0 }] }, 0],
    [
      "a concurrency of 0 for that project alone",
      { projects: [{ maxConcurrentAgents: 0 }, { id: "q", maxConcurrentAgents: 3 }] },
      3,
    ],
    ["a budget of so many tokens", { projects: [{ budgetLimit: 3 }] }, 3],
    [
      "a budget, by what a task has used on average",
      { projects: [{ budgetLimit: 100 }], projectTokenUsage: { p: 40 }, tasksCompletedInWindow: { p: 2 } },
      3,
    ],
    ["a budget used up", { projects: [{ budgetLimit: 5 }], projectTokenUsage: { p: 5 } }, 0],
    ["the global budget", { globalBudget: 10, globalTokensUsed: 8 }, 2],
    ["the global budget used up", { globalBudget: 10, globalTokensUsed: 11 }, 0],
    [
      "a project called constructor",
      { projects: [{ id: "constructor" }], tasks: [aTask("t", "constructor")] },
      1,
    ],
  ])("keeps to %s", (_, overrides, count) => {
    expect(planSnapshot(aSnapshot({ tasks: many, agents: idle(9), ...overrides }))).toHaveLength(count);
  });

  it("serves first who was granted nothing in the window, then the lowest clock of use by share", () => {
    const of = (project: string) => ["1", "2", "3"].map((n) => aTask(`${project}${n}`, project));
    const snapshot = aSnapshot({
      projects: [{ id: "used" }, { id: "light" }, { id: "new" }],
      tasks: ["used", "light", "new"].flatMap(of),
      agents: idle(9),
      projectTokenUsage: { used: 500, light: 200 },
      tasksCompletedInWindow: { used: 5, light: 2 },
    });
    // Clocks, in tasks of 100 tokens: used 5, light 2, new 0. Ties go to the project served longest ago.
    expect(tasksOf(snapshot)).toEqual([
      ...["new1", "new2", "light1", "new3", "light2", "light3"],
      ...["used1", "used2", "used3"],
    ]);
  });

  it("counts what runs as use, and a heavier weight as a larger share", () => {
    const tasksCompletedInWindow = { p: 1, q: 1 };
    const running = { tasks: many, agents: idle(2), tasksCompletedInWindow, projects: both };
    expect(tasksOf(aSnapshot({ ...running, projectActiveAgentCounts: { p: 2 } }))).toEqual(["q1", "q2"]);
    const shares = {
      projects: [{ id: "p" }, { id: "q", creditWeight: 4 }],
      projectTokenUsage: { p: 2, q: 4 },
    };
    expect(tasksOf(aSnapshot({ ...running, ...shares }))).toEqual(["q1", "q2"]);
  });

  it("assigns nothing twice, breaks no limit and leaves nothing lying that fits", () => {
    const project = fc.record({
      id: fc.constantFrom("p", "q", "r"),
      creditWeight: fc.double({ min: 0.1, max: 9, noNaN: true }),
      status: fc.constantFrom("active", "paused"),
      budgetLimit: fc.option(fc.nat(9)),
      maxConcurrentAgents: fc.integer({ min: 0, max: 4 }),
    });
    const task = fc.tuple(fc.nat(99), fc.constantFrom("p", "q", "r", "ghost"), fc.nat(3));
    const snapshots = fc.record({
      projects: fc.uniqueArray(project, { selector: ({ id }) => id }),
      tasks: fc.uniqueArray(task, { selector: ([n]) => n, maxLength: 20 }),
      agents: fc.nat(8),
      used: fc.record({ p: fc.nat(9), q: fc.nat(9) }),
      active: fc.record({ p: fc.nat(2), r: fc.nat(2) }),
      completed: fc.record({ p: fc.nat(3), q: fc.nat(3) }),
    });
    fc.assert(
      fc.property(snapshots, ({ projects, tasks, agents, used, active, completed }) => {
        const snapshot = aSnapshot({
          projects,
          tasks: tasks.map(([n, projectId, priority]) => aTask(`t${n}`, projectId, priority)),
          agents: idle(agents),
          projectTokenUsage: used,
          projectActiveAgentCounts: active,
          tasksCompletedInWindow: completed,
        });
        const actions = planSnapshot(snapshot);
        expect(new Set(actions.map(({ taskId }) => taskId)).size).toBe(actions.length);
        expect(new Set(actions.map(({ agentId }) => agentId)).size).toBe(actions.length);
        const done = completed.p + completed.q;
        const perTask = done === 0 ? 1 : Math.max(1, (used.p + used.q) / done);
        const rooms = projects.map(({ id, status, budgetLimit, maxConcurrentAgents }) => {
          const got = actions.filter(({ projectId }) => projectId === id).length;
          const capacity = maxConcurrentAgents - ((active as Record<string, number>)[id] ?? 0);
          const tokens =
            (budgetLimit ?? Number.POSITIVE_INFINITY) - ((used as Record<string, number>)[id] ?? 0);
          const queued = snapshot.tasks.filter(({ projectId }) => projectId === id).length;
          const room = Math.max(0, Math.min(capacity, Math.floor(tokens / perTask), queued));
          expect(got).toBeLessThanOrEqual(status === "active" ? room : 0);
          return status === "active" ? room : 0;
        });
        const total = rooms.reduce((sum, room) => sum + room, 0);
        expect(actions).toHaveLength(Math.min(agents, total));
      }),
    );
  });

  it.each<[string, Overrides]>([
    ["projects[1].creditWeight", { projects: [{}, { id: "q", creditWeight: 0 }] }],
    ["projects[0].creditWeight", { projects: [{ creditWeight: 0 }] }],
    ["projects[0].creditWeight", { projects: [{ creditWeight: Number.NaN }] }],
    ["projects[0].maxConcurrentAgents", { projects: [{ maxConcurrentAgents: -1 }] }],
    ["projects[1].id", { projects: [{}, {}] }],
    ["tasks[1].id", { tasks: [aTask("t", "p"), aTask("t", "p")] }],
    ["tasks[0].id", { tasks: [aTask(" p", "p")] }],
    ["agents[1].id", { agents: [...idle(1), ...idle(1)] }],
    ["globalTokensUsed", { globalTokensUsed: -1 }],
  ])("refuses a bad %s", (field, overrides) => {
    expect(() => planSnapshot(aSnapshot({ projects: both, ...overrides }))).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }),
    );
  });
});
