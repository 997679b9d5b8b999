// VAPORA's ADR-018: the six named checks, under the document's names, and further statements.

import { describe, expect, it, test } from "vitest";
import {
  assignTaskToBestAgent,
  collectSwarmMetrics,
  type VaporaAgent,
  vaporaMetrics,
} from "../../../src/scheduling/exact/vapora.ts";
import { vaporaLoad, vaporaScore } from "../../../src/scheduling/score.ts";

function anAgent(overrides: Partial<VaporaAgent> = {}): VaporaAgent {
  return { id: "a", status: "ready", inFlight: 0, maxConcurrent: 5, successRate: 0.9, ...overrides };
}

/** The document's "Load Calculation Examples". */
const agentA = anAgent({ id: "A", successRate: 0.95, inFlight: 2 });
const agentB = anAgent({ id: "B", successRate: 0.85, inFlight: 0 });
const agentC = anAgent({ id: "C", successRate: 0.9, inFlight: 5 });

function assigned(agents: readonly VaporaAgent[], count: number) {
  let now = agents;
  const winners: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const assignment = assignTaskToBestAgent(now);
    winners.push(assignment.agent);
    now = assignment.agents;
  }
  return { agents: now, winners };
}

function shareOf(winners: readonly string[], agent: string): number {
  return winners.filter((winner) => winner === agent).length / winners.length;
}

describe("the checks that ADR-018 names", () => {
  test("test_assignment_score_calculation", () => {
    expect(vaporaScore(agentA)).toBeCloseTo(0.68, 2);
    expect(vaporaScore(agentB)).toBe(0.85);
    expect(vaporaScore(agentC)).toBe(0.45);
  });

  test("test_load_factor_impact", () => {
    const scores = [0, 1, 2, 3, 4, 5].map((inFlight) => vaporaScore(anAgent({ inFlight })));
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(new Set(scores).size).toBe(6);
    expect(scores[5]).toBe((scores[0] as number) / 2);
    expect(vaporaLoad(anAgent({ inFlight: 5 }))).toBe(1);
  });

  test("test_select_best_agent", () => {
    expect(assignTaskToBestAgent([agentA, agentB, agentC])).toMatchObject({ agent: "B", score: 0.85 });
    expect(assignTaskToBestAgent([agentC, agentA]).agent).toBe("A");
  });

  test("test_fair_distribution", () => {
    const agents = [0.95, 0.9, 0.85, 0.8].map((successRate, n) => anAgent({ id: `a${n}`, successRate }));
    const { winners } = assigned(agents, 20);
    for (const { id } of agents) {
      expect(shareOf(winners, id)).toBeGreaterThan(0.1);
      expect(shareOf(winners, id)).toBeLessThan(0.4);
    }
  });

  test("test_assignment_sequence", () => {
    const { agents, winners } = assigned([agentA, agentB, agentC], 3);
    // B at 0.85; then B at 0.85/1.2 = 0.708 is still above A at 0.679; then A.
    expect(winners).toEqual(["B", "B", "A"]);
    expect(agents.map(({ inFlight }) => inFlight)).toEqual([3, 2, 5]);
  });

  test("test_load_balancing_stress", () => {
    const swarm = Array.from({ length: 50 }, (_, n) =>
      anAgent({ id: `a${n}`, maxConcurrent: 1 + (n % 10), successRate: 0.8 + (n % 5) / 50 }),
    );
    const capacity = swarm.reduce((total, { maxConcurrent }) => total + maxConcurrent, 0);
    const { agents, winners } = assigned(swarm, capacity);
    const metrics = collectSwarmMetrics(agents);
    expect(metrics).toMatchObject({ totalInFlight: capacity, busyAgents: 50, offlineAgents: 0 });
    expect(metrics.avgLoad).toBeCloseTo(1, 1);
    for (const { id } of swarm) expect(shareOf(winners, id)).toBeLessThan(0.06);
  });
});

describe("selection", () => {
  it("skips offline agents, accepts busy agents, and takes the first of equals", () => {
    const offline = anAgent({ id: "gone", status: "offline", successRate: 1 });
    const busy = anAgent({ id: "busy", status: "busy" });
    expect(assignTaskToBestAgent([offline, busy, anAgent({ id: "later" })]).agent).toBe("busy");
  });

  it("requires a role only when asked", () => {
    const agents = [anAgent({ id: "coder", role: "coder" }), anAgent({ id: "any", successRate: 1 })];
    expect(assignTaskToBestAgent(agents).agent).toBe("any");
    expect(assignTaskToBestAgent(agents, "coder").agent).toBe("coder");
  });

  it("selects a full agent when it scores best: the document's gap", () => {
    const full = anAgent({ id: "full", inFlight: 5, successRate: 1 });
    expect(assignTaskToBestAgent([full, anAgent({ successRate: 0.1 })]).agent).toBe("full");
  });

  it("does not change its arguments", () => {
    const agents = [Object.freeze(anAgent())];
    expect(assignTaskToBestAgent(agents).agents[0]?.inFlight).toBe(1);
    expect(agents[0]?.inFlight).toBe(0);
  });

  it.each([
    ["nobody", [], undefined],
    ["nobody online", [anAgent({ status: "offline" })], undefined],
    ["nobody of the role", [anAgent({ role: "tester" })], "coder"],
  ] as const)("says NoAgentsAvailable for %s", (_, agents, role) => {
    expect(() => assignTaskToBestAgent(agents, role)).toThrow(
      expect.objectContaining({ code: "WAGGLE_NO_AGENTS_AVAILABLE" }),
    );
  });

  it.each<[string, Partial<VaporaAgent>]>([
    ["agents[0].maxConcurrent", { maxConcurrent: 0 }],
    ["agents[0].inFlight", { inFlight: -1 }],
    ["agents[0].successRate", { successRate: Number.NaN }],
    ["agents[0].successRate", { successRate: 1.1 }],
  ])("refuses a bad %s", (field, overrides) => {
    const agents = [anAgent(overrides)];
    const refusal = expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field });
    expect(() => assignTaskToBestAgent(agents)).toThrow(refusal);
    expect(() => collectSwarmMetrics(agents)).toThrow(refusal);
  });
});

describe("metrics", () => {
  it("counts the swarm", () => {
    const offline = anAgent({ id: "D", status: "offline", successRate: 0.3 });
    const metrics = collectSwarmMetrics([agentA, agentB, agentC, offline]);
    expect(metrics).toEqual({
      totalAgents: 4,
      idleAgents: 2,
      busyAgents: 2,
      offlineAgents: 1,
      totalInFlight: 7,
      avgSuccessRate: expect.closeTo(0.75, 12),
      avgLoad: expect.closeTo(0.35, 12),
    });
  });

  it("is 0, never NaN, without agents", () => {
    const values = Object.values(collectSwarmMetrics([]));
    expect(values).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });

  it("has the document's three for Prometheus", () => {
    expect(vaporaMetrics.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "vapora_task_assignments_total counter",
      "vapora_agent_current_load gauge",
      "vapora_assignment_score histogram",
    ]);
  });
});
