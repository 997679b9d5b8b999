// Gates between a task and all agents, and between an agent and all tasks: each gate closed, and opened again.

import { beforeEach, describe, expect, it } from "vitest";
import { agentId, incarnation, instant, kind, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { budgetVerdict, closedRate, nextOpeningAt, rateGate, swarmGate } from "../../src/scheduling/gates.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import { totalAt } from "../../src/state/rolling-window.ts";
import { LedgerSwarm } from "../core/ledger-fixture.ts";
import { liveTask } from "../support/task-refs.ts";
import { aTask } from "../support/turns.ts";

let swarm: LedgerSwarm;

beforeEach(() => {
  swarm = new LedgerSwarm();
  swarm.join("a1", { agentType: "claude" });
});

/** Submits a task with an estimate, and tries to assign it. */
function attempt(id: string, tokens: number): string {
  swarm.submit(id, { tokens });
  return swarm.assign(id, "a1");
}

function verdictOn(tokens: number) {
  return budgetVerdict(swarm.state, swarm.project(), aTask({ tokens }), swarm.at);
}

function complete(tokens?: number): void {
  swarm.report(swarm.last("TaskAssigned"), {
    kind: "completed",
    result: "",
    ...(tokens === undefined ? {} : { tokens }),
  });
}

describe("the swarm's and the project's gates", () => {
  it("are closed by a pause, and opened by its end", () => {
    swarm.submit("t1");
    swarm.record({ type: "SwarmPaused" });
    expect(swarm.assign("t1", "a1")).toBe("swarm-paused");
    swarm.record({ type: "SwarmResumed" });
    swarm.record({ type: "ProjectPaused", project: projectId("p") });
    expect(swarm.assign("t1", "a1")).toBe("project-paused");
    swarm.record({ type: "ProjectResumed", project: projectId("p") });
    expect(swarm.assign("t1", "a1")).toBe("assigned");
  });

  it("hold TopN until an attempt ends, in any way, the loss of its agent included", () => {
    swarm.setPolicy({ topN: 1 });
    expect([attempt("t1", 0), attempt("t2", 0)]).toEqual(["assigned", "swarm-limit"]);
    swarm.ask({ type: "LapseAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
    expect(swarmGate(swarm.state)).toBeUndefined();
    expect(swarm.state.openAttempts).toBe(0);
  });

  it("count a revoked attempt against a project's concurrency until its agent releases it", () => {
    swarm.setProject({ maxConcurrent: 1 });
    expect([attempt("t1", 0), attempt("t2", 0)]).toEqual(["assigned", "project-concurrency"]);
    swarm.ask({ type: "CancelTask", project: projectId("p"), task: taskId("t1"), round: 1 });
    expect(swarm.assign("t2", "a1")).toBe("project-concurrency");
    swarm.report(swarm.last("TaskAssigned"), { kind: "revoked" });
    expect(swarm.assign("t2", "a1")).toBe("assigned");
  });
});

describe("the budgets' gate", () => {
  it("counts reserved and spent tokens, and passes exactly the tasks that fit", () => {
    swarm.setBudget({ tokens: 1_000 });
    expect(attempt("t1", 600)).toBe("assigned");
    expect(attempt("t2", 401)).toBe("project-budget");
    expect(attempt("t3", 400)).toBe("assigned");
    complete(100);
    expect(swarm.assign("t2", "a1")).toBe("project-budget");
    expect(verdictOn(300)).toMatchObject({ kind: "runs", tokens: 300 });
    expect(verdictOn(301)).toMatchObject({ kind: "waits", reason: "project-budget" });
  });

  it("names the swarm's budget where that budget is used up", () => {
    swarm.setPolicy({ budget: { tokens: 500, windowMs: 60_000, mode: "wait" } });
    expect([attempt("t1", 400), attempt("t2", 200)]).toEqual(["assigned", "global-budget"]);
  });

  it("holds nothing up in mode alert, and records an excess once per window", () => {
    swarm.setBudget({ tokens: 500, mode: "alert" });
    expect([attempt("t1", 400), attempt("t2", 400), attempt("t3", 400)]).toEqual(Array(3).fill("assigned"));
    const [exceeded, ...others] = swarm.all("BudgetExceeded");
    expect(exceeded).toMatchObject({ project: "p", spent: 0, reserved: 800 });
    expect(others).toEqual([]);
    swarm.pass(60_000);
    attempt("t4", 1);
    expect(swarm.all("BudgetExceeded")).toHaveLength(2);
  });

  it("runs tasks as the cheaper kind in mode downgrade, while the budget does not fit", () => {
    swarm.setBudget({ tokens: 500, mode: "downgrade" });
    swarm.setKind("k", { cheaper: kind("cheap") });
    expect([attempt("t1", 400), attempt("t2", 400)]).toEqual(["assigned", "assigned"]);
    expect(swarm.all("TaskAssigned").map(({ runsAs }) => runsAs)).toEqual([undefined, "cheap"]);
    expect(liveTask(swarm.state, "t2")?.open?.kind).toBe("cheap");
    expect(verdictOn(1)).toMatchObject({ kind: "runs", runsAs: "cheap" });
  });

  it("estimates a downgraded task as the cheaper kind, and checks the other budget with the same estimate", () => {
    swarm.setBudget({ tokens: 500, mode: "downgrade" });
    swarm.setPolicy({ tokensDefault: 900, budget: { tokens: 1_500, windowMs: 60_000, mode: "wait" } });
    swarm.setKind("k", { cheaper: kind("cheap") });
    swarm.submit("taught", { kind: kind("cheap") });
    swarm.assign("taught", "a1");
    complete(700);
    const verdict = () => budgetVerdict(swarm.state, swarm.project(), aTask(), swarm.at);
    const budget = { project: "downgrade" };
    expect(verdict()).toEqual({ kind: "runs", runsAs: "cheap", tokens: 700, budget });
    swarm.setPolicy({ budget: { tokens: 1_399, windowMs: 60_000, mode: "wait" } });
    expect(verdict()).toMatchObject({ kind: "waits", reason: "global-budget", tokens: 700 });
  });

  it("sends tasks to the cheaper type alone in mode downgrade, with or without a cheaper kind", () => {
    swarm.setBudget({ tokens: 500, mode: "downgrade" });
    swarm.setKind("k", { cheaperType: "haiku" });
    expect(verdictOn(500)).toEqual({ kind: "runs", tokens: 500 });
    const downgraded = { kind: "runs", cheaperType: "haiku", tokens: 501, budget: { project: "downgrade" } };
    expect(verdictOn(501)).toEqual(downgraded);
    swarm.setKind("k", { cheaper: kind("cheap"), cheaperType: "haiku" });
    expect(verdictOn(501)).toEqual({ ...downgraded, runsAs: "cheap" });
    expect(attempt("t1", 501)).toBe("wrong-type");
    swarm.join("a2", { agentType: "haiku" });
    expect(swarm.assign("t1", "a2")).toBe("assigned");
    const granted = swarm.last("TaskAssigned");
    expect(granted).toMatchObject({ runsAs: "cheap", cheaperType: "haiku" });
    swarm.submit("t2");
    const other = { ...granted, task: taskId("t2"), agent: agentId("a1"), incarnation: incarnation("a1-1") };
    expect(() => swarm.record(other)).toThrow("goes to the type named as cheaper");
  });

  it("names the exceeded budgets that do not hold a task up", () => {
    const small = { tokens: 100, windowMs: 60_000 };
    const said = () => {
      const { kind: outcome, budget } = verdictOn(101);
      return [outcome, budget];
    };
    swarm.setBudget({ tokens: 100, mode: "alert" });
    expect(verdictOn(100)).not.toHaveProperty("budget");
    expect(said()).toEqual(["runs", { project: "alert" }]);
    swarm.setPolicy({ budget: { ...small, mode: "downgrade" } });
    expect(said()).toEqual(["runs", { project: "alert", global: "downgrade" }]);
    swarm.setBudget({ tokens: 101, mode: "alert" });
    expect(said()).toEqual(["runs", { global: "downgrade" }]);
    swarm.setPolicy({ budget: { ...small, mode: "alert" } });
    expect(said()).toEqual(["runs", { global: "alert" }]);
    swarm.setPolicy({ budget: { ...small, mode: "wait" } });
    expect(said()).toEqual(["waits", undefined]);
  });

  it("runs a kind without a cheaper kind unchanged in mode downgrade", () => {
    swarm.setBudget({ tokens: 100, mode: "downgrade" });
    expect(attempt("t1", 400)).toBe("assigned");
    expect(swarm.last("TaskAssigned").runsAs).toBeUndefined();
    expect(swarm.all("BudgetExceeded")).toHaveLength(1);
  });

  it("stays closed under a budget set below the spent tokens, until these have left the window", () => {
    attempt("t1", 900);
    complete();
    swarm.setBudget({ tokens: 100, windowMs: 60_000 });
    expect(attempt("t2", 50)).toBe("project-budget");
    const opening = nextOpeningAt(swarm.state, swarm.at);
    expect(opening).toBeDefined();
    swarm.pass((opening ?? 0) - swarm.at - 1);
    expect(swarm.assign("t2", "a1")).toBe("project-budget");
    swarm.pass(1);
    expect(swarm.assign("t2", "a1")).toBe("assigned");
  });

  it("refuses at submission a task that could never fit, by any estimate", () => {
    swarm.setBudget({ tokens: 1_000 });
    expect(swarm.submit("big", { tokens: 1_001 })).toEqual({
      kind: "over-budget",
      reason: "project-budget",
      source: "said",
      tokens: 1_001,
      tokensMax: 1_000,
    });
    swarm.setPolicy({ tokensDefault: 600, budget: { tokens: 500, windowMs: 60_000, mode: "wait" } });
    expect(swarm.submit("unknown")).toMatchObject({ kind: "over-budget", reason: "global-budget" });
    expect(swarm.submit("small", { tokens: 500 })).toMatchObject({ kind: "accepted" });
    swarm.setPolicy({ budget: { tokens: 500, windowMs: 60_000, mode: "alert" } });
    expect(swarm.submit("unknown")).toMatchObject({ kind: "accepted" });
  });
});

describe("the rate's gate", () => {
  it.each([true, false])("closes at the limit and opens when the window is over (sliding: %s)", (sliding) => {
    swarm.setRate("claude", { tokensMax: 1_000, sliding });
    attempt("t1", 0);
    complete(999);
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
    attempt("t2", 0);
    complete(1);
    swarm.submit("t3");
    expect(swarm.assign("t3", "a1")).toBe("rate-limited");
    const opening = nextOpeningAt(swarm.state, swarm.at) ?? swarm.at;
    expect(opening - swarm.at).toBeGreaterThan(60_000 - 1_000);
    expect(opening - swarm.at).toBeLessThanOrEqual(61_000);
    expect(rateGate(swarm.state, "claude", instant(opening - 1))).toBe(true);
    expect(rateGate(swarm.state, "claude", opening)).toBe(false);
  });

  it("is open for types without a rate, and for agents without a type", () => {
    swarm.setRate("claude", { tokensMax: 0 });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
    expect(rateGate(swarm.state, "other", swarm.at)).toBe(false);
    expect(rateGate(swarm.state, undefined, swarm.at)).toBe(false);
    swarm.record({ type: "RateRemoved", agentType: "claude", window: "per_minute" });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
  });

  it("keeps past use when the limit or the class of window changes, and no longer than the window", () => {
    swarm.setRate("claude", { tokensMax: 1_000, sliding: false });
    attempt("t1", 0);
    complete(800);
    swarm.pass(50_000);
    swarm.setRate("claude", { tokensMax: 500, sliding: true });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
    swarm.setRate("claude", { tokensMax: 500, sliding: false });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
    swarm.pass(11_000);
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
    swarm.setRate("claude", { tokensMax: 500, sliding: true });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
  });

  it("holds for every window of a type, and opens when all windows have room", () => {
    swarm.setRate("claude", { tokensMax: 100, window: "per_minute" });
    swarm.setRate("claude", { tokensMax: 250, window: "per_hour" });
    for (const id of ["t1", "t2"]) {
      attempt(id, 0);
      complete(100);
      expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
      expect(closedRate(swarm.state, "claude", swarm.at)?.row.settings.window).toBe("per_minute");
      swarm.pass(62_000);
      expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
    }
    attempt("t3", 0);
    complete(100);
    const closed = closedRate(swarm.state, "claude", swarm.at);
    expect(closed?.row.settings.window).toBe("per_hour");
    swarm.submit("t4");
    const opening = nextOpeningAt(swarm.state, swarm.at) ?? swarm.at;
    expect(opening).toBe(closed?.opensAt);
    expect(opening - swarm.at).toBeGreaterThan(3_400_000);
    expect(rateGate(swarm.state, "claude", instant(opening - 1))).toBe(true);
    expect(rateGate(swarm.state, "claude", opening)).toBe(false);
    swarm.record({ type: "RateRemoved", agentType: "claude", window: "per_hour" });
    expect(closedRate(swarm.state, "claude", swarm.at)?.row.settings.window).toBe("per_minute");
  });

  it("begins a new window of a type without use", () => {
    swarm.setRate("claude", { tokensMax: 1_000, window: "per_day" });
    attempt("t1", 0);
    complete(800);
    swarm.pass(7_200_000);
    swarm.setRate("claude", { tokensMax: 500, window: "per_minute" });
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
  });

  it.each([true, false])(
    "goes on from what was used when it is removed and set anew (sliding: %s)",
    (sliding) => {
      swarm.setRate("claude", { tokensMax: 100, sliding });
      attempt("t1", 0);
      swarm.record({ type: "RateRemoved", agentType: "claude", window: "per_minute" });
      complete(150);
      expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
      swarm.setRate("claude", { tokensMax: 120 });
      expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
      swarm.record({ type: "RateRemoved", agentType: "claude", window: "per_minute" });
      swarm.pass(62_000);
      swarm.setRate("claude", { tokensMax: 120 });
      expect(rateGate(swarm.state, "claude", swarm.at)).toBe(false);
    },
  );

  it("remembers removed rates only while some of their use counts, up to the maximum of rates", () => {
    for (let index = 0; index <= limits.ratesMax; index += 1) {
      swarm.setRate(`type-${index}`, { tokensMax: 100 });
      swarm.record({ type: "RateRemoved", agentType: `type-${index}`, window: "per_minute" });
    }
    expect(swarm.state.removedRatesByType.size).toBe(1);
  });
});

describe("a rate under many open attempts", () => {
  it.each([true, false])("counts their reservations until each is settled (sliding: %s)", (sliding) => {
    swarm.join("many", { agentType: "claude", maxConcurrent: 9 });
    swarm.setRate("claude", { tokensMax: 100, sliding });
    swarm.submit("t1", { tokens: 60 });
    swarm.submit("t2", { tokens: 60 });
    swarm.submit("t3", { tokens: 60 });
    expect(["t1", "t2", "t3"].map((id) => swarm.assign(id, "many"))).toEqual([
      "assigned",
      "assigned",
      "rate-limited",
    ]);
    expect(nextOpeningAt(swarm.state, swarm.at)).toBeUndefined();
    complete(0);
    expect(swarm.assign("t3", "many")).toBe("assigned");
    complete(60);
    swarm.submit("t4");
    expect(rateGate(swarm.state, "claude", swarm.at)).toBe(true);
    const opening = nextOpeningAt(swarm.state, swarm.at) ?? swarm.at;
    expect(rateGate(swarm.state, "claude", instant(opening - 1))).toBe(true);
    expect(rateGate(swarm.state, "claude", opening)).toBe(false);
  });

  it("is not overshot by one round", () => {
    const state = swarm.state;
    swarm.join("b1", { agentType: "codex", maxConcurrent: 20 });
    swarm.join("b2", { agentType: "codex", maxConcurrent: 20 });
    swarm.join("free", { maxConcurrent: 2 });
    swarm.setRate("codex", { tokensMax: 250 });
    for (let index = 0; index < 20; index += 1) swarm.submit(`t${index}`, { tokens: 100 });
    const round = new Planner(state).open(swarm.at);
    for (let event = round.next(); event !== undefined; event = round.next()) swarm.record(event);
    expect(state.reservedByType.get("codex")).toBe(300);
  });
});

describe("the next opening", () => {
  it("is undefined while nothing waits, or time alone opens nothing", () => {
    swarm.setBudget({ tokens: 1_000 });
    expect(nextOpeningAt(swarm.state, swarm.at)).toBeUndefined();
    attempt("t1", 900);
    attempt("t2", 900);
    expect(nextOpeningAt(swarm.state, swarm.at)).toBeUndefined();
    complete(900);
    expect(nextOpeningAt(swarm.state, swarm.at)).toBeGreaterThan(swarm.at);
  });

  it("is in the future, however long the swarm was idle", () => {
    swarm.setBudget({ tokens: 1_000 });
    attempt("t1", 900);
    attempt("t2", 900);
    complete(900);
    const { spent } = swarm.project().ledger;
    for (let step = 0; step < 70; step += 1) {
      const opening = nextOpeningAt(swarm.state, swarm.at);
      if (opening === undefined) break;
      expect(opening).toBeGreaterThan(swarm.at);
      swarm.pass(opening - swarm.at);
    }
    expect(spent === undefined ? -1 : totalAt(spent, swarm.at)).toBe(0);
  });
});
