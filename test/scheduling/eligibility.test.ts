// The filters: their order, and the two that yield.

import { describe, expect, it } from "vitest";
import { agentId, type GroupId, kind } from "../../src/ids.ts";
import { type Demand, peersOf, standingFor } from "../../src/scheduling/eligibility.ts";
import { ineligibleReasons } from "../../src/state/receipt.ts";
import type { AgentRow } from "../../src/state/state.ts";
import { aKind, SwarmFixture } from "./swarm-fixture.ts";

interface Asked {
  readonly role?: string;
  readonly agentType?: string;
  readonly avoid?: readonly string[];
}

function aDemand({ role, agentType, avoid = [] }: Asked = {}): Demand {
  return { kind: aKind, role, agentType, avoid: avoid.map(agentId) };
}

function standing(swarm: SwarmFixture, id: string, demand = aDemand()) {
  const peers = peersOf(swarm.state, demand);
  return standingFor(swarm.state, swarm.agent(id), demand, peers, swarm.at);
}

describe("eligibility", () => {
  it("gives the first reason in the order of the receipt's codes", () => {
    const swarm = new SwarmFixture();
    const bad = swarm.join("bad");
    for (const id of ["good", "other"]) swarm.join(id, { role: "r", agentType: "small" });
    swarm.submit("t");
    swarm.assign("t", "bad");
    swarm.suspend("bad", { until: swarm.at + 1 });
    swarm.hold("agent", "bad", swarm.at + 1);
    bad.kinds = new Set();
    bad.unresponsive = true;
    bad.draining = true;
    bad.online = false;
    const mends: ((row: AgentRow) => void)[] = [
      (row) => (row.online = true),
      (row) => (row.draining = false),
      (row) => (row.kinds = new Set([aKind])),
      (row) => (row.labels = { gpu: "a100" }),
      (row) => (row.group = "east" as GroupId),
      (row) => (row.role = "r"),
      (row) => (row.agentType = "small"),
      (row) => (row.maxConcurrent = 2),
      (row) => (row.unresponsive = false),
      () => swarm.state.holds.agent.clear(),
      (row) => row.suspensionByKind.clear(),
    ];
    for (const id of ["good", "other"]) swarm.agent(id).labels = { gpu: "a100" };
    for (const id of ["good", "other"]) swarm.agent(id).group = "east" as GroupId;
    const access = { key: "east", admits: (group: GroupId) => group === "east" };
    const demand = {
      ...aDemand({ role: "r", agentType: "small", avoid: ["bad"] }),
      needs: { gpu: ["a100"] },
      access,
    };
    const reasons = mends.map((mend) => {
      const reason = standing(swarm, "bad", demand);
      mend(bad);
      return reason;
    });
    reasons.push(standing(swarm, "bad", demand));
    // The rate of the agent's type is a separate gate (gates.test.ts).
    expect(reasons).toEqual(ineligibleReasons.filter((reason) => reason !== "rate-limited"));
    expect(standing(swarm, "bad", aDemand({ role: "r" }))).toBe("feasible");
  });

  it("requires a role only where the task does", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { role: "x" });
    swarm.join("b");
    expect(standing(swarm, "a")).toBe("feasible");
    expect(standing(swarm, "b", aDemand({ role: "x" }))).toBe("wrong-role");
  });

  it("requires a type only where a budget does, and yields among agents of that type alone", () => {
    const swarm = new SwarmFixture();
    for (const id of ["a", "b"]) swarm.join(id, { agentType: "small" });
    for (const id of ["c", "d"]) swarm.join(id);
    expect(standing(swarm, "c")).toBe("feasible");
    expect(standing(swarm, "c", aDemand({ agentType: "small" }))).toBe("wrong-type");
    for (const id of ["a", "b"]) swarm.suspend(id, { until: swarm.at + 1 });
    expect(standing(swarm, "a")).toBe("suspended");
    expect(standing(swarm, "a", aDemand({ agentType: "small" }))).toBe("feasible");
    expect(standing(swarm, "a", aDemand({ agentType: "small", avoid: ["a"] }))).toBe("failed-this-task");
    expect(standing(swarm, "a", aDemand({ agentType: "small", avoid: ["a", "b"] }))).toBe("feasible");
  });

  it("counts prefetch and revoked attempts towards a full agent", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { maxConcurrent: 1, prefetch: 1 });
    for (const id of ["t1", "t2"]) {
      swarm.submit(id);
      expect(standing(swarm, "a")).toBe("feasible");
      swarm.assign(id, "a");
    }
    expect(standing(swarm, "a")).toBe("full");
    swarm.fail("t1", { revoked: true });
    expect(standing(swarm, "a")).toBe("full");
    swarm.complete("t2");
    expect(standing(swarm, "a")).toBe("feasible");
  });

  describe("of an agent that failed the task", () => {
    function tried() {
      const swarm = new SwarmFixture();
      swarm.join("a");
      return swarm;
    }
    const failedByA = aDemand({ avoid: ["a"] });

    it("skips it while another live agent serves the kind, full or not", () => {
      const swarm = tried();
      swarm.join("b");
      expect(standing(swarm, "a", failedByA)).toBe("failed-this-task");
      swarm.submit("t");
      swarm.assign("t", "b");
      expect(standing(swarm, "a", failedByA)).toBe("failed-this-task");
      swarm.stopAnswering("b");
      expect(standing(swarm, "a", failedByA)).toBe("failed-this-task");
    });

    it("admits the agent if no other agent is there, or all failed the task", () => {
      const swarm = tried();
      expect(standing(swarm, "a", failedByA)).toBe("feasible");
      swarm.join("elsewhere", { kinds: ["other"] });
      expect(standing(swarm, "a", failedByA)).toBe("feasible");
      swarm.join("b");
      expect(standing(swarm, "a", aDemand({ avoid: ["a", "b"] }))).toBe("feasible");
      swarm.drain("b");
      expect(standing(swarm, "a", failedByA)).toBe("feasible");
      swarm.leave("b");
      expect(standing(swarm, "a", failedByA)).toBe("feasible");
    });

    it("admits the agent if all other agents are suspended: a single failure of a good agent must not make the task wait for a bad agent", () => {
      const swarm = tried();
      swarm.join("b");
      swarm.suspend("b", { until: swarm.at + 1000 });
      expect(standing(swarm, "a", failedByA)).toBe("feasible");
    });

    it("admits it when the others do not have the role", () => {
      const swarm = new SwarmFixture();
      swarm.join("a", { role: "x" });
      swarm.join("b");
      expect(standing(swarm, "a", aDemand({ role: "x", avoid: ["a"] }))).toBe("feasible");
      expect(standing(swarm, "a", failedByA)).toBe("failed-this-task");
    });
  });

  describe("of a suspended agent", () => {
    function suspended() {
      const swarm = new SwarmFixture();
      swarm.join("a", { kinds: ["k", "other"], maxConcurrent: 4 });
      swarm.join("b");
      swarm.suspend("a", { until: swarm.at + 1000 });
      return swarm;
    }

    it("excludes the agent from the kind alone until the back-off has ended", () => {
      const swarm = suspended();
      expect(standing(swarm, "a")).toBe("suspended");
      expect(standing(swarm, "a", { ...aDemand(), kind: kind("other") })).toBe("feasible");
      swarm.pass(999);
      expect(standing(swarm, "a")).toBe("suspended");
      swarm.pass(1);
      expect(standing(swarm, "a")).toBe("probe");
    });

    it("admits it to one task, and to the next once the first attempt ended, in any way", () => {
      const swarm = suspended();
      swarm.submit("before");
      swarm.assign("before", "a");
      swarm.pass(1000);
      expect(standing(swarm, "a")).toBe("probe");
      swarm.submit("probe");
      swarm.assign("probe", "a");
      expect(standing(swarm, "a")).toBe("suspended");
      swarm.fail("before");
      expect(standing(swarm, "a")).toBe("suspended");
      swarm.fail("probe", { failureClass: "lost" });
      expect(standing(swarm, "a")).toBe("probe");
      swarm.assign("probe", "a");
      swarm.fail("probe", { failureClass: "stalled", revoked: true });
      expect(standing(swarm, "a")).toBe("probe");
    });

    it("yields where every agent of the kind and role is suspended", () => {
      const swarm = suspended();
      swarm.suspend("b", { until: swarm.at + 1000 });
      expect([standing(swarm, "a"), standing(swarm, "b")]).toEqual(["feasible", "feasible"]);
      swarm.join("c", { role: "x" });
      expect([standing(swarm, "a"), standing(swarm, "b")]).toEqual(["suspended", "suspended"]);
      swarm.drain("c");
      expect([standing(swarm, "a"), standing(swarm, "b")]).toEqual(["feasible", "feasible"]);
    });

    it("holds for tasks of any role, although it yields for tasks that only the agent can do", () => {
      const swarm = new SwarmFixture();
      swarm.join("a", { role: "x" });
      swarm.join("b");
      swarm.suspend("a", { until: swarm.at + 1000 });
      expect(standing(swarm, "a")).toBe("suspended");
      expect(standing(swarm, "a", aDemand({ role: "x" }))).toBe("feasible");
    });
  });
});
