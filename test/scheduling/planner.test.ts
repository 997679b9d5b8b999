// Stories of a round: whose turn, which agent, and the receipt.

import { describe, expect, it } from "vitest";
import { agentId, resourceName, slotHandle } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { backlogsOf } from "../../src/scheduling/explain-agents.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import { ruleSets } from "../../src/state/policy.ts";
import { pairsOf, SwarmFixture } from "./swarm-fixture.ts";

function aSwarm(...agents: string[]): SwarmFixture {
  const swarm = new SwarmFixture();
  for (const id of agents) swarm.join(id);
  return swarm;
}

describe("a round", () => {
  it("assigns nothing without waiting tasks or without agents", () => {
    expect(aSwarm("a").plan()).toEqual([]);
    const lonely = aSwarm();
    lonely.submit("t1");
    expect(lonely.plan()).toEqual([]);
  });

  it("names the grant: attempt, number and token, and the reasons", () => {
    const swarm = aSwarm("a1", "a2");
    swarm.submit("t1");
    swarm.assign("t1", "a1");
    swarm.fail("t1");
    swarm.pass(250);
    const [assigned] = swarm.plan();
    expect(assigned).toEqual({
      type: "TaskAssigned",
      project: "p",
      task: "t1",
      attempt: 2,
      agent: "a2",
      incarnation: "a2-1",
      number: 1,
      token: "7.1",
      receipt: {
        feasible: 1,
        candidates: [{ agent: "a2", score: 0.9, successRate: 0.9, load: 0 }],
        ineligible: { "failed-this-task": 1 },
        decidedBy: "only",
        queue: "k",
        waiting: 1,
        waitedMs: 250,
      },
    });
  });

  it("gives an agent tasks when the hold that it ran into ended, and was placed anew before the round", () => {
    const swarm = aSwarm("a1");
    const gpu = resourceName("gpu");
    swarm.apply({ type: "ResourceConfigured", resource: gpu, settings: { slots: 2, maxWaiters: 9 } });
    swarm.hold("resource", gpu);
    swarm.submit("t1");
    swarm.assign("t1", "a1");
    swarm.fail("t1", { failureClass: "refused", refusal: { on: { resource: gpu } } });
    expect(swarm.plan()).toEqual([]);
    swarm.apply({ type: "HoldEnded", on: "resource", name: gpu, reason: "probed" });
    swarm.hold("resource", gpu);
    expect(swarm.plan()).toMatchObject([{ task: "t1", agent: "a1" }]);
  });

  it.each([undefined, 100_000])(
    "finds a task for a free agent behind more failed tasks than the planner looks at, budget: %s",
    (tokens) => {
      const swarm = aSwarm("a1");
      swarm.join("a2");
      if (tokens !== undefined) swarm.setProject("p", { budget: { tokens, windowMs: 60_000, mode: "wait" } });
      for (let n = 0; n <= limits.budgetLookAhead; n += 1) {
        swarm.submit(`failed-${n}`);
        swarm.assign(`failed-${n}`, "a1");
        swarm.fail(`failed-${n}`);
      }
      swarm.submit("busy");
      swarm.assign("busy", "a2");
      swarm.submit("fresh");
      expect(pairsOf(swarm.plan(ruleSets.vapora))).toEqual(["fresh→a1"]);
    },
  );

  it("selects as VAPORA's worked example does", () => {
    const swarm = aSwarm();
    for (const [id, held] of Object.entries({ A: 2, B: 0, C: 4 })) {
      swarm.join(id, { maxConcurrent: 5 });
      for (let n = 0; n < held; n += 1) {
        swarm.submit(`${id}${n}`);
        swarm.assign(`${id}${n}`, id);
      }
    }
    swarm.submit("t");
    const [assigned] = swarm.plan({ lambda: 0 });
    expect(assigned?.receipt.decidedBy).toBe("score");
    expect(assigned?.receipt.candidates.map(({ agent, load }) => [agent, load])).toEqual([
      ["B", 0],
      ["A", 0.4],
      ["C", 0.8],
    ]);
  });

  it("spreads equal work over equal agents: fewer in flight, longest idle, then id", () => {
    const swarm = aSwarm();
    for (const id of ["a2", "a1", "a3"]) swarm.join(id, { maxConcurrent: 2 });
    for (let n = 1; n <= 6; n += 1) swarm.submit(`t${n}`);
    const assigned = swarm.plan();
    expect(pairsOf(assigned)).toEqual(["t1→a1", "t2→a2", "t3→a3", "t4→a1", "t5→a2", "t6→a3"]);
    expect(assigned.map(({ receipt }) => receipt.decidedBy)).toEqual([
      "id",
      "id",
      "score",
      "longest-idle",
      "longest-idle",
      "only",
    ]);
  });

  it("gives a kind's work to an agent with successes at the kind, not at other kinds", () => {
    const swarm = aSwarm();
    for (const id of ["x", "y"]) swarm.join(id, { kinds: ["k", "l"], maxConcurrent: 2 });
    swarm.teach("x", { successes: 30 });
    swarm.teach("x", { failures: 30, kind: "l" });
    swarm.teach("y", { successes: 30, kind: "l" });
    swarm.teach("y", { failures: 30 });
    swarm.submit("t1", { kind: "l" });
    swarm.submit("t2", { kind: "k" });
    expect(pairsOf(swarm.plan())).toEqual(["t1→y", "t2→x"]);
  });

  it("never lets a full kind block another", () => {
    const swarm = aSwarm();
    swarm.join("a", { kinds: ["k"] });
    swarm.join("b", { kinds: ["l"], maxConcurrent: 2 });
    for (const id of ["k1", "k2", "k3"]) swarm.submit(id, { priority: 1 });
    for (const id of ["l1", "l2"]) swarm.submit(id, { kind: "l", priority: 9 });
    expect(pairsOf(swarm.plan())).toEqual(["k1→a", "l1→b", "l2→b"]);
  });

  it("prefers, of two equally loaded agents, the agent with less backlog", () => {
    const swarm = aSwarm();
    for (const id of ["a", "b"]) swarm.join(id, { prefetch: 4 });
    for (const id of ["a1", "b1", "a2", "b2"]) {
      swarm.submit(id, { weight: id === "a2" ? 5 : 1 });
      swarm.assign(id, id.charAt(0));
    }
    swarm.submit("t");
    const ours = new Planner(swarm.state).open(swarm.at).next();
    // Both hold two attempts; a's waiting attempt weighs five times as much: L = α·1 against α·0.2, no ages yet.
    expect(ours?.receipt).toMatchObject({
      decidedBy: "score",
      candidates: [
        { agent: "b", load: 2, backlog: 0.05 },
        { agent: "a", load: 2, backlog: 0.25 },
      ],
    });
    swarm.state.policy = { ...swarm.state.policy, ...ruleSets.vapora };
    const vaporas = new Planner(swarm.state).open(swarm.at).next();
    expect(vaporas?.receipt).toMatchObject({ decidedBy: "longest-idle", candidates: [{ agent: "a" }, {}] });
    expect(vaporas?.receipt.candidates[0]).not.toHaveProperty("backlog");
  });

  it("counts waiting slot leases as an agent's backlog", () => {
    const swarm = aSwarm("a", "b");
    const gpt = resourceName("gpt");
    swarm.apply({ type: "ResourceConfigured", resource: gpt, settings: { slots: 1, maxWaiters: 9 } });
    const { id: agent, incarnation } = swarm.agent("a");
    const asks = { agent, incarnation, handle: slotHandle("h"), resources: [gpt], weightThousandths: 2_000 };
    swarm.apply({ type: "SlotAwaited", ...asks });
    swarm.submit("t");
    const [assigned] = swarm.plan();
    expect(assigned?.agent).toBe("b");
    expect(assigned?.receipt.candidates[1]).toMatchObject({ agent: "a", backlog: 0.25 });
  });

  it("compares backlogs only of agents that run tasks, and counts no others in a receipt", () => {
    const swarm = aSwarm("a", "b");
    const gpt = resourceName("gpt");
    swarm.apply({ type: "ResourceConfigured", resource: gpt, settings: { slots: 1, maxWaiters: 99 } });
    const asks = (id: string, handle: string) => {
      const { id: agent, incarnation } = swarm.agent(id);
      const of = {
        agent,
        incarnation,
        handle: slotHandle(handle),
        resources: [gpt],
        weightThousandths: 2_000,
      };
      swarm.apply({ type: "SlotAwaited", ...of });
    };
    for (const id of ["holder", "gone"]) swarm.join(id, { kinds: [] });
    swarm.leave("gone");
    asks("a", "h");
    for (let n = 0; n < 90; n += 1) asks("holder", `h${n}`);
    swarm.submit("t");
    const [assigned] = swarm.plan();
    expect(assigned?.agent).toBe("b");
    expect(assigned?.receipt.candidates[1]).toMatchObject({ agent: "a", backlog: 0.25 });
    expect(assigned?.receipt.ineligible).toEqual({});
    expect([...backlogsOf(swarm.state)].map(([{ id }, backlog]) => [id, backlog])).toEqual([["a", 0.25]]);
  });

  it("counts agents again that return with kinds, or without", () => {
    const swarm = aSwarm("a", "b");
    const ineligible = (id: string) => {
      swarm.submit(id);
      const [assigned] = swarm.plan();
      if (assigned !== undefined) swarm.complete(id, 1);
      return assigned?.receipt.ineligible;
    };
    expect(ineligible("t1")).toEqual({});
    swarm.join("b", { kinds: [] });
    expect(ineligible("t2")).toEqual({});
    swarm.join("b", { kinds: ["l"] });
    expect(ineligible("t3")).toEqual({ "wrong-kind": 1 });
    swarm.join("b", { kinds: [] });
    swarm.leave("b");
    expect(ineligible("t4")).toEqual({});
  });

  it("probes a suspended agent with one task first, and gives it no second task", () => {
    const swarm = aSwarm();
    for (const id of ["bad", "good"]) swarm.join(id, { maxConcurrent: 4 });
    swarm.suspend("bad");
    for (const id of ["t1", "t2", "t3"]) swarm.submit(id);
    const assigned = swarm.plan();
    expect(pairsOf(assigned)).toEqual(["t1→bad", "t2→good", "t3→good"]);
    expect(assigned[0]?.receipt).toMatchObject({ decidedBy: "probe", feasible: 2 });
    expect(assigned[1]?.receipt).toMatchObject({ decidedBy: "only", ineligible: { suspended: 1 } });
  });

  it("risks a task's last attempt on a probe only where no other agent may have it", () => {
    const swarm = aSwarm("bad", "good");
    swarm.suspend("bad");
    for (const id of ["t1", "t2"]) swarm.submit(id, { maxAttempts: 1 });
    expect(pairsOf(swarm.plan())).toEqual(["t1→good", "t2→bad"]);
  });

  it("insists that each assignment is applied before the next is asked for", () => {
    const swarm = aSwarm("a", "b");
    swarm.submit("t1");
    const round = new Planner(swarm.state).open(swarm.at);
    round.next();
    expect(() => round.next()).toThrow(/applied before the next/);
  });

  it("keeps receipts within their bytes for the longest names there are", () => {
    const swarm = aSwarm();
    const longest = "蜂".repeat(128);
    for (const id of ["a", "b", "c", "d"]) swarm.join(id.repeat(64), { kinds: [longest], maxConcurrent: 2 });
    for (let n = 0; n < 8; n += 1) swarm.submit(`t${n}`, { kind: longest });
    const assigned = swarm.plan();
    expect(assigned).toHaveLength(8);
    for (const { receipt, agent } of assigned) {
      expect(Buffer.byteLength(JSON.stringify(receipt))).toBeLessThanOrEqual(limits.receiptBytesMax);
      expect(receipt.candidates[0]?.agent).toBe(agentId(agent));
      expect(receipt.queue).toMatch(/^蜂+…$/);
    }
  });
});
