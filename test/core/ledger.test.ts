// Charges and their times: reservations, settlements, returned reservations, and late reports.

import { beforeEach, describe, expect, it } from "vitest";
import type { ReportedOutcome } from "../../src/core/command.ts";
import { agentId, incarnation, kind, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { unchargedKey } from "../../src/state/budget-rows.ts";
import {
  costCorrection,
  costEstimate,
  estimateFactor,
  learnEstimate,
  tokensEstimate,
} from "../../src/state/estimate.ts";
import { emptyWindow, totalAt } from "../../src/state/rolling-window.ts";
import type { KindRow } from "../../src/state/state.ts";
import { aRef } from "../support/task-refs.ts";
import { aTask, join } from "../support/turns.ts";
import { LedgerSwarm } from "./ledger-fixture.ts";

let swarm: LedgerSwarm;

beforeEach(() => {
  swarm = new LedgerSwarm();
  swarm.join("a1", { agentType: "claude" });
  swarm.join("a2");
  swarm.setBudget({ tokens: 10_000, windowMs: 60_000 });
});

function assign(id: string, tokens: number, agent = "a1"): void {
  swarm.submit(id, { tokens, maxAttempts: 5 });
  expect(swarm.assign(id, agent)).toBe("assigned");
}

function report(outcome: ReportedOutcome) {
  return swarm.report(swarm.last("TaskAssigned"), outcome);
}

/** Of the project: reserved and spent tokens. */
function levels(): readonly [reserved: number, spent: number] {
  const { reserved, spent, usage } = swarm.project().ledger;
  const total = spent === undefined ? -1 : totalAt(spent, swarm.at);
  expect(totalAt(usage, swarm.at)).toBe(total);
  expect(swarm.state.ledger.reserved).toBe(reserved);
  expect(totalAt(swarm.state.ledger.usage, swarm.at)).toBe(total);
  return [reserved, total];
}

const lapse = (agent = "a1") =>
  swarm.ask({ type: "LapseAgent", agent: agentId(agent), incarnation: incarnation(`${agent}-1`) });
const cancel = (id: string) =>
  swarm.ask({ type: "CancelTask", project: projectId("p"), task: taskId(id), round: 1 });

describe("an attempt's end", () => {
  it.each<readonly [string, ReportedOutcome, spent: number]>([
    ["completed, with its tokens", { kind: "completed", result: "", tokens: 700 }, 700],
    ["completed, with more than it reserved", { kind: "completed", result: "", tokens: 1_700 }, 1_700],
    ["completed, with none", { kind: "completed", result: "", tokens: 0 }, 0],
    ["completed, without a word of tokens", { kind: "completed", result: "" }, 1_000],
    ["failed, with its tokens", { kind: "failed", error: "", tokens: 300 }, 300],
    ["failed, without a word", { kind: "failed", error: "" }, 1_000],
    ["invalid, with its tokens", { kind: "invalid", error: "", tokens: 20 }, 20],
    ["refused by infrastructure", { kind: "infrastructure", error: "" }, 0],
    ["refused by infrastructure after some tokens", { kind: "infrastructure", error: "", tokens: 5 }, 5],
    ["given up by its agent, with its tokens", { kind: "revoked", tokens: 40 }, 40],
    ["given up by its agent, without a word", { kind: "revoked" }, 1_000],
  ])("spends the due tokens: %s", (_, outcome, spent) => {
    assign("t1", 1_000);
    expect(levels()).toEqual([1_000, 0]);
    report(outcome);
    expect(levels()).toEqual([0, spent]);
    report(outcome);
    expect(levels()).toEqual([0, spent]);
  });

  it("returns all reservations when agents are lost at random", () => {
    for (let n = 0; n < 6; n += 1) assign(`t${n}`, 500, n % 2 === 0 ? "a1" : "a2");
    expect(levels()).toEqual([3_000, 0]);
    lapse("a1");
    expect(levels()).toEqual([1_500, 0]);
    swarm.ask({ type: "LeaveAgent", agent: agentId("a2"), incarnation: incarnation("a2-1") });
    expect(levels()).toEqual([0, 0]);
    expect(swarm.state.openAttempts).toBe(0);
  });

  it("counts for the rate of its agent's type", () => {
    swarm.setRate("claude", { tokensMax: 10 });
    assign("t1", 0, "a2");
    report({ kind: "completed", result: "", tokens: 50 });
    assign("t2", 0, "a1");
    report({ kind: "failed", error: "", tokens: 10 });
    swarm.pass(limits.retryBackoffMsMax);
    assign("t3", 0, "a1");
    report({ kind: "completed", result: "", tokens: 10 });
    swarm.submit("t4");
    expect(swarm.assign("t4", "a1")).toBe("rate-limited");
    expect(swarm.assign("t4", "a2")).toBe("assigned");
  });
});

describe("a revoked attempt", () => {
  it.each<readonly [string, ReportedOutcome, spent: number]>([
    ["what its agent names at last", { kind: "revoked", tokens: 400 }, 400],
    ["its reservation, when its agent names nothing", { kind: "revoked" }, 1_000],
    ["nothing, when it never started", { kind: "revoked", tokens: 0 }, 0],
    ["what its agent names, whatever the outcome", { kind: "completed", result: "", tokens: 900 }, 900],
  ])("holds the reservation until the release, then spends %s", (_, outcome, spent) => {
    assign("t1", 1_000);
    cancel("t1");
    expect(levels()).toEqual([1_000, 0]);
    expect(swarm.state.openAttempts).toBe(1);
    expect(report(outcome)).toEqual({ kind: "stale" });
    expect(levels()).toEqual([0, spent]);
    report(outcome);
    expect(levels()).toEqual([0, spent]);
  });

  it("of a time-out keeps its reservation beside the next attempt's", () => {
    swarm.submit("t1", { tokens: 1_000, timeoutMs: 5_000, maxAttempts: 3 });
    swarm.assign("t1", "a1");
    swarm.pass(5_000);
    swarm.pass(limits.retryBackoffMs);
    expect(swarm.assign("t1", "a2")).toBe("assigned");
    expect(levels()).toEqual([2_000, 0]);
    const [first] = swarm.all("TaskAssigned");
    if (first !== undefined) swarm.report(first, { kind: "failed", error: "", tokens: 600 });
    expect(levels()).toEqual([1_000, 600]);
  });

  it("of a lost agent returns the reservation", () => {
    assign("t1", 1_000);
    cancel("t1");
    lapse();
    expect(levels()).toEqual([0, 0]);
  });

  it("keeps its project's row, though the project has no live task", () => {
    swarm.submit("o1", { project: projectId("other"), tokens: 10 });
    swarm.assign("o1", "a1");
    swarm.ask({ type: "CancelTask", project: projectId("other"), task: taskId("o1"), round: 1 });
    expect(swarm.state.idleProjects.has(projectId("other"))).toBe(false);
    report({ kind: "revoked", tokens: 3 });
    expect(swarm.state.idleProjects.has(projectId("other"))).toBe(true);
    expect(totalAt(swarm.project("other").ledger.usage, swarm.at)).toBe(3);
  });
});

describe("a report after its attempt was lost", () => {
  it("is charged once, however often it comes", () => {
    assign("t1", 1_000);
    const [lost] = swarm.all("TaskAssigned");
    lapse();
    swarm.join("a1", { incarnation: incarnation("a1-2"), agentType: "claude" });
    swarm.setRate("claude", { tokensMax: 700 });
    for (let n = 0; n < 3; n += 1)
      if (lost !== undefined) swarm.report(lost, { kind: "completed", result: "", tokens: 700 });
    expect(levels()).toEqual([0, 700]);
    expect(swarm.all("TokensCharged")).toEqual([
      expect.objectContaining({ task: "t1", agent: "a1", project: "p", tokens: 700 }),
    ]);
    swarm.submit("t2", { tokens: 1 });
    expect(swarm.assign("t2", "a1")).toBe("rate-limited");
  });

  it("spends the reservation if the report has no tokens, and nothing if infrastructure refused", () => {
    assign("t1", 1_000);
    assign("t2", 1_000);
    const [one, two] = swarm.all("TaskAssigned");
    lapse();
    if (one !== undefined) swarm.report(one, { kind: "failed", error: "" });
    if (two !== undefined) swarm.report(two, { kind: "infrastructure", error: "" });
    expect(levels()).toEqual([0, 1_000]);
  });

  it("is charged beside the next attempt", () => {
    assign("t1", 1_000);
    const [lost] = swarm.all("TaskAssigned");
    lapse();
    expect(swarm.assign("t1", "a2")).toBe("assigned");
    report({ kind: "completed", result: "", tokens: 800 });
    if (lost !== undefined)
      expect(swarm.report(lost, { kind: "completed", result: "", tokens: 900 }).kind).toBe("stale");
    expect(levels()).toEqual([0, 1_700]);
  });

  it("is not charged under another name, nor once ended tasks are forgotten", () => {
    assign("t1", 1_000);
    const [lost] = swarm.all("TaskAssigned");
    lapse();
    if (lost === undefined) throw new Error("nothing was assigned");
    swarm.report({ ...lost, agent: agentId("a2") }, { kind: "completed", result: "", tokens: 9 });
    swarm.report({ ...lost, task: taskId("t2") }, { kind: "completed", result: "", tokens: 9 });
    expect(swarm.all("TokensCharged")).toEqual([]);
    swarm.pass(limits.rememberMsDefault + 1);
    assign("t2", 0, "a2");
    lapse("a2");
    swarm.report(lost, { kind: "completed", result: "", tokens: 9 });
    expect(swarm.all("TokensCharged")).toEqual([]);
  });

  it("is charged at the last instant at which ended tasks are remembered", () => {
    assign("t1", 1_000);
    const [lost] = swarm.all("TaskAssigned");
    lapse();
    swarm.pass(limits.rememberMsDefault);
    assign("t2", 0, "a2");
    lapse("a2");
    if (lost !== undefined) swarm.report(lost, { kind: "completed", result: "", tokens: 9 });
    expect(swarm.all("TokensCharged")).toMatchObject([{ task: "t1", tokens: 9 }]);
  });

  it("is awaited for a bounded number of attempts: the attempt lost longest ago is forgotten first", () => {
    assign("t1", 1_000);
    assign("t2", 1_000, "a2");
    const [one, two] = swarm.all("TaskAssigned");
    if (one === undefined || two === undefined) throw new Error("nothing was assigned");
    lapse("a1");
    const [row] = swarm.state.uncharged.values();
    if (row === undefined) throw new Error("nothing is awaited");
    const room = limits.unchargedAttemptsMax - swarm.state.uncharged.size;
    for (let n = 1; n < room; n += 1) swarm.state.uncharged.set(`other ${n}`, row);
    lapse("a2");
    expect(swarm.state.uncharged.size).toBe(limits.unchargedAttemptsMax);
    expect(swarm.state.uncharged.has(unchargedKey(one))).toBe(true);

    swarm.join("a3");
    assign("t3", 0, "a3");
    lapse("a3");
    expect(swarm.state.uncharged.size).toBe(limits.unchargedAttemptsMax);
    for (const late of [one, two]) swarm.report(late, { kind: "completed", result: "", tokens: 9 });
    expect(swarm.all("TokensCharged")).toMatchObject([{ task: "t2", tokens: 9 }]);
  });
});

describe("a change of settings", () => {
  it("begins a new budget with the tokens known to be spent, and keeps reservations", () => {
    swarm.setProject({});
    assign("t1", 500);
    report({ kind: "completed", result: "" });
    assign("t2", 300);
    swarm.setBudget({ tokens: 1_000 });
    expect(levels()).toEqual([300, 500]);
    swarm.setBudget({ tokens: 1_000, windowMs: 3_600_000 });
    expect(levels()).toEqual([300, 500]);
  });

  it.each([
    ["without a budget", undefined],
    ["with one of an hour", 3_600_000],
    ["with one of a day", 86_400_000],
  ] as const)("counts no use older than a new window plus a bucket: %s", (_, windowMs) => {
    if (windowMs === undefined) swarm.setProject({});
    else swarm.setBudget({ windowMs });
    assign("t1", 0);
    report({ kind: "completed", result: "", tokens: 2_000 });
    const total = () => totalAt(swarm.project().ledger.spent ?? emptyWindow(1), swarm.at);
    swarm.pass(59_000);
    swarm.setBudget({ windowMs: 60_000 });
    expect(total()).toBe(2_000);
    swarm.setBudget({ windowMs: 3_600_000 });
    swarm.pass(16_000);
    swarm.setBudget({ windowMs: 60_000 });
    expect(total()).toBe(0);
    swarm.setBudget({ windowMs: 86_400_000 });
    expect(total()).toBe(2_000);
    swarm.pass(7_200_000);
    swarm.setPolicy({ guaranteeMs: 60_000 });
    expect(totalAt(swarm.project().ledger.usage, swarm.at)).toBe(0);
    swarm.setPolicy({ guaranteeMs: 3 * 3_600_000, budget: { tokens: 9, windowMs: 60_000, mode: "wait" } });
    expect(totalAt(swarm.project().ledger.usage, swarm.at)).toBe(2_000);
    expect(totalAt(swarm.state.ledger.spent ?? emptyWindow(1), swarm.at)).toBe(0);
  });

  it("moves all usage when the window of shares changes", () => {
    assign("t1", 500);
    report({ kind: "completed", result: "" });
    swarm.setPolicy({ guaranteeMs: 60_000 });
    swarm.pass(62_000);
    expect(levels()).toEqual([0, 0]);
  });
});

describe("estimates", () => {
  it("are the submitter's, else the kind's mean, else the policy's", () => {
    expect(tokensEstimate(swarm.state, aTask({ tokens: 7 }))).toBe(7);
    expect(tokensEstimate(swarm.state, aTask())).toBe(limits.tokensPerAttemptDefault);
    const took = (id: string, outcome: ReportedOutcome) => {
      assign(id, 2_000);
      report(outcome);
    };
    took("t1", { kind: "completed", result: "", tokens: 1_000 });
    expect(tokensEstimate(swarm.state, aTask())).toBe(1_000);
    took("t2", { kind: "completed", result: "", tokens: 2_000 });
    expect(tokensEstimate(swarm.state, aTask())).toBe(1_300);
    took("t3", { kind: "failed", error: "", tokens: 0 });
    expect(tokensEstimate(swarm.state, aTask())).toBe(910);
    took("t4", { kind: "completed", result: "", tokens: 912 });
    expect(tokensEstimate(swarm.state, aTask())).toBe(911);
  });

  it("learn nothing from attempts that ended early", () => {
    for (const [index, outcome] of (
      [
        { kind: "completed", result: "" },
        { kind: "infrastructure", error: "", tokens: 1 },
        { kind: "invalid", error: "", tokens: 1 },
      ] as const
    ).entries()) {
      assign(`t${index}`, 100);
      report(outcome);
    }
    assign("t9", 100);
    cancel("t9");
    report({ kind: "revoked", tokens: 1 });
    expect(tokensEstimate(swarm.state, aTask())).toBe(limits.tokensPerAttemptDefault);
  });

  it("of a downgraded attempt teach the kind it ran as", () => {
    swarm.setKind("k", { cheaper: kind("cheap") });
    swarm.setBudget({ tokens: 1, mode: "downgrade" });
    swarm.submit("t1");
    swarm.assign("t1", "a1");
    report({ kind: "completed", result: "", tokens: 44 });
    expect(tokensEstimate(swarm.state, aTask({ kind: kind("cheap") }))).toBe(44);
    expect(tokensEstimate(swarm.state, aTask())).toBe(limits.tokensPerAttemptDefault);
  });
});

describe("cost", () => {
  const spent = { charged: 2_500, isReturned: false, tokens: undefined };
  const task = { weight: 2.5, tokens: 1_000 };

  it("is the weight in whole thousandths", () => {
    expect(costEstimate({ weight: 2.5 })).toBe(2_500);
    expect(costEstimate({ weight: 1.0004 })).toBe(1_000);
  });

  it("is corrected by the report against the submitter's estimate", () => {
    expect(costCorrection(task, { ...spent, tokens: 2_000 })).toBe(2_500);
    expect(costCorrection(task, { ...spent, tokens: 500 })).toBe(-1_250);
    expect(costCorrection(task, { ...spent, tokens: 1_000 })).toBe(0);
  });

  it("stands without an estimate or a report", () => {
    expect(costCorrection(task, spent)).toBe(0);
    expect(costCorrection({ weight: 2.5 }, { ...spent, tokens: 9 })).toBe(0);
    expect(costCorrection({ weight: 2.5, tokens: 0 }, { ...spent, tokens: 9 })).toBe(0);
    expect(costCorrection({ weight: 2.5 }, { ...spent, charged: 2_000 })).toBe(500);
  });

  it("is nothing for an attempt that infrastructure refused or that was lost", () => {
    expect(costCorrection(task, { ...spent, isReturned: true, tokens: 9_999 })).toBe(-2_500);
  });

  it("is bounded, however wrong an estimate was", () => {
    const wrong = costCorrection({ weight: 2.5, tokens: 1 }, { ...spent, tokens: Number.MAX_SAFE_INTEGER });
    expect(wrong).toBe(2_500 * limits.costRatioMax - 2_500);
  });
});

it("a join of the same session keeps its attempts' reservations", () => {
  assign("t1", 1_000);
  const held = [{ ...aRef("t1"), attempt: swarm.last("TaskAssigned").attempt }];
  swarm.ask(
    join("a1", { kinds: [kind("k")], agentType: "other", held, seen: swarm.last("TaskAssigned").number }),
  );
  expect(levels()).toEqual([1_000, 0]);
});

describe("an estimate that is too small", () => {
  it("is corrected by its kind's past use, so that few attempts overspend a budget", () => {
    swarm.setBudget({ tokens: 1_000, windowMs: 3_600_000 });
    const outcomes: string[] = [];
    for (let index = 0; index < 10; index += 1) {
      swarm.submit(`t${index}`, { tokens: 100 });
      const outcome = swarm.assign(`t${index}`, "a1");
      outcomes.push(outcome);
      if (outcome === "assigned") report({ kind: "completed", result: "", tokens: 900 });
    }
    expect(outcomes).toEqual(["assigned", ...Array(9).fill("project-budget")]);
    expect(levels()).toEqual([0, 900]);
  });

  it("is multiplied by a mean that can fall again, and never cuts a good estimate", () => {
    const factors = [900, 50, 50, 50, 50, 50, 50, 50, 50, 50].map((used, index) => {
      assign(`t${index}`, 100);
      report({ kind: "completed", result: "", tokens: used });
      return tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 200 })) / 200;
    });
    expect(factors[0]).toBe(9);
    expect(factors[1]).toBeCloseTo(0.7 * 9 + 0.3 * 0.5, 2);
    expect(factors.at(-1)).toBe(1);
  });

  it("is corrected by no more than fits the whole budget, or no task would run and correct the mean", () => {
    assign("t1", 1);
    report({ kind: "completed", result: "", tokens: 500_000 });
    swarm.pass(70_000);
    expect(tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 3_000 }))).toBe(10_000);
    expect(tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 30_000 }))).toBe(30_000);
    expect(
      tokensEstimate(swarm.state, aTask({ id: taskId("next"), project: projectId("free"), tokens: 3_000 })),
    ).toBe(3_000 * limits.estimateFactorMax);
    assign("t2", 3_000);
  });

  it("is corrected to whole tokens, upwards, and counts as 1 where it is 0", () => {
    assign("t1", 100);
    report({ kind: "completed", result: "", tokens: 150 });
    const estimate = (tokens: number) => tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens }));
    expect([estimate(3), estimate(1), estimate(0)]).toEqual([5, 2, 2]);
    const row = swarm.state.kindByName.get(kind("k")) as KindRow;
    delete row.estimateMeans;
    learnEstimate(row, 0, 5);
    expect(estimateFactor(row)).toBe(5);
    row.estimateMeans = { estimated: 100, used: 50 };
    expect(estimateFactor(row)).toBe(1);
  });

  it("is corrected by no more than fits the smaller of two budgets", () => {
    assign("t1", 1);
    report({ kind: "completed", result: "", tokens: 500 });
    for (const [own, global] of [
      [1_000, 5_000],
      [5_000, 1_000],
    ] as const) {
      swarm.setBudget({ tokens: own, windowMs: 60_000 });
      swarm.setPolicy({ budget: { tokens: global, windowMs: 60_000, mode: "wait" } });
      expect(tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 300 }))).toBe(1_000);
    }
  });

  it("learns from an attempt that ended early only where it already used more", () => {
    assign("t1", 100);
    cancel("t1");
    report({ kind: "revoked", tokens: 10 });
    expect(tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 100 }))).toBe(100);
    assign("t2", 100);
    cancel("t2");
    report({ kind: "revoked", tokens: 300 });
    expect(tokensEstimate(swarm.state, aTask({ id: taskId("next"), tokens: 100 }))).toBe(300);
  });
});
