// Needs of tasks against labels of agents, and affinities, in rounds of the planner.

import { describe, expect, it } from "vitest";
import { checkAfterTurn } from "../../src/core/invariants.ts";
import { agentId, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import { beginAffinity } from "../../src/state/affinity-rows.ts";
import { aTask } from "../support/turns.ts";
import { pairsOf, SwarmFixture } from "./swarm-fixture.ts";

const hour = 3_600_000;

describe("a task with needs", () => {
  it("goes to an agent with the labels alone, and the receipt counts the others", () => {
    const swarm = new SwarmFixture();
    swarm.join("a1", { labels: { gpu: "h100" } });
    swarm.join("a2", { labels: { gpu: "a100", region: "eu" } });
    swarm.join("a3");
    swarm.join("a4", { kinds: ["other"], labels: { gpu: "a100", region: "eu" } });
    swarm.join("a5", { labels: { gpu: "a100", region: "eu" } });
    swarm.drain("a5");
    swarm.submit("t1", { needs: { gpu: "a100", region: ["us", "eu"] } });
    const [assigned] = swarm.plan();
    expect(assigned).toMatchObject({
      agent: "a2",
      receipt: {
        feasible: 1,
        decidedBy: "only",
        queue: "k needs gpu=a100 region=eu,us",
        ineligible: { label: 2, "wrong-kind": 1, draining: 1 },
      },
    });
  });

  it("waits for an agent with the labels, and holds up no task without needs", () => {
    const swarm = new SwarmFixture();
    swarm.join("a1", { maxConcurrent: 9 });
    swarm.submit("t1", { needs: { gpu: "a100" }, priority: 0 });
    swarm.submit("t2");
    expect(pairsOf(swarm.plan())).toEqual(["t2→a1"]);
    swarm.join("a2", { labels: { gpu: "a100" } });
    expect(pairsOf(swarm.plan())).toEqual(["t1→a2"]);
  });

  it("follows the labels of a new session, also in a planner that is kept", () => {
    const swarm = new SwarmFixture();
    swarm.join("a1", { labels: { gpu: "a100" }, maxConcurrent: 2 });
    swarm.submit("t1", { needs: { gpu: "a100" } });
    expect(pairsOf(swarm.plan())).toEqual(["t1→a1"]);
    swarm.complete("t1");
    swarm.leave("a1");
    swarm.join("a1", { labels: { gpu: "h100" } });
    swarm.submit("t2", { needs: { gpu: "a100" } });
    swarm.submit("t3", { needs: { gpu: "h100" } });
    const [assigned, ...rest] = swarm.plan();
    expect(rest).toEqual([]);
    expect(assigned).toMatchObject({ task: "t3", agent: "a1" });
    swarm.complete("t3");
    // The same session may join again with other labels, for example after a change of leaders.
    swarm.join("a1", { labels: { gpu: "a100" } });
    expect(pairsOf(swarm.plan(undefined, new Planner(swarm.state)))).toEqual(["t2→a1"]);
  });

  it("is tried again at an agent with a failure, if no other agent has the labels", () => {
    const swarm = new SwarmFixture();
    swarm.join("a1", { labels: { gpu: "a100" } });
    swarm.join("a2");
    swarm.submit("t1", { needs: { gpu: "a100" } });
    swarm.plan();
    swarm.fail("t1");
    expect(pairsOf(swarm.plan())).toEqual(["t1→a1"]);
  });

  it("is never applied at an agent without the labels: a journal that says so is damaged", () => {
    const swarm = new SwarmFixture();
    swarm.join("a1", { labels: { gpu: "h100" } });
    swarm.submit("t1", { needs: { gpu: "a100" } });
    expect(() => swarm.assign("t1", "a1")).toThrow("t1 goes to an agent with the labels it needs");
  });

  it("costs an agent nothing in the pools of labels that it does not have", () => {
    const swarm = new SwarmFixture();
    const hosts = Array.from({ length: 300 }, (_, at) => `host-${at}`);
    for (const host of hosts) swarm.join(host, { labels: { host } });
    for (const host of hosts) swarm.submit(`for-${host}`, { needs: { host } });
    expect(pairsOf(swarm.plan())).toEqual(hosts.map((host) => `for-${host}→${host}`));
    // One after the other: pools of hosts without tasks are dropped for new ones, and made again.
    for (const round of [1, 2]) {
      for (const host of hosts) {
        swarm.complete(round === 1 ? `for-${host}` : `again-${host}`);
        const id = round === 1 ? `again-${host}` : `last-${host}`;
        swarm.submit(id, { needs: { host } });
        expect(pairsOf(swarm.plan())).toEqual([`${id}→${host}`]);
      }
    }
    expect(checkAfterTurn(swarm.state)).toEqual([]);
  });
});

describe("an affinity", () => {
  const aSwarm = () => {
    const swarm = new SwarmFixture();
    for (const id of ["a1", "a2", "a3"]) swarm.join(id, { maxConcurrent: 2 });
    return swarm;
  };

  it("prefers the agent of the last task with it, before better agents, and the receipt says so", () => {
    const swarm = aSwarm();
    swarm.submit("t1", { affinity: "s" });
    expect(pairsOf(swarm.plan())).toEqual(["t1→a1"]);
    swarm.submit("t2", { affinity: "s" });
    swarm.submit("t3");
    const assigned = swarm.plan();
    expect(pairsOf(assigned)).toEqual(["t2→a1", "t3→a2"]);
    expect(assigned[0]?.receipt).toMatchObject({
      decidedBy: "affinity",
      feasible: 3,
      candidates: [{ agent: "a1", load: 0.5 }, { agent: "a2" }, { agent: "a3" }],
    });
  });

  it("never makes a task wait: a full, drained or failed agent is passed over, and the next takes over", () => {
    const swarm = aSwarm();
    for (const id of ["t1", "t2", "t3"]) swarm.submit(id, { affinity: "s" });
    expect(pairsOf(swarm.plan())).toEqual(["t1→a1", "t2→a1", "t3→a2"]);
    for (const id of ["t1", "t2", "t3"]) swarm.complete(id);
    swarm.submit("t4", { affinity: "s" });
    swarm.drain("a2");
    expect(pairsOf(swarm.plan())).toEqual(["t4→a3"]);
    swarm.fail("t4");
    expect(pairsOf(swarm.plan())).toEqual(["t4→a1"]);
    swarm.complete("t4");
    swarm.submit("t5", { affinity: "s" });
    expect(swarm.plan()[0]).toMatchObject({ agent: "a1", receipt: { decidedBy: "affinity" } });
  });

  it("never makes a task wait behind others at its agent", () => {
    const swarm = new SwarmFixture();
    for (const id of ["a1", "a2"]) swarm.join(id, { prefetch: 2 });
    for (const id of ["t1", "t2", "t3", "t4"]) swarm.submit(id, { affinity: "s" });
    const assigned = swarm.plan();
    expect(pairsOf(assigned)).toEqual(["t1→a1", "t2→a2", "t3→a1", "t4→a2"]);
    expect(assigned.map(({ receipt }) => receipt.decidedBy)).not.toContain("affinity");
  });

  it("is of one project, and yields to needs", () => {
    const swarm = aSwarm();
    swarm.join("a4", { labels: { gpu: "a100" } });
    swarm.submit("t1", { affinity: "s" });
    swarm.plan();
    swarm.submit("t2", { affinity: "s", project: "q" });
    expect(swarm.plan()[0]?.receipt.decidedBy).not.toBe("affinity");
    swarm.submit("t3", { affinity: "s", needs: { gpu: "a100" } });
    expect(pairsOf(swarm.plan())).toEqual(["t3→a4"]);
  });

  it("is forgotten an hour after the last end of an attempt", () => {
    const swarm = aSwarm();
    swarm.submit("t1", { affinity: "s" });
    swarm.plan();
    swarm.pass(hour - 1);
    swarm.complete("t1");
    swarm.pass(hour - 1);
    swarm.submit("t2", { affinity: "s" });
    expect(swarm.plan()[0]).toMatchObject({ agent: "a1", receipt: { decidedBy: "affinity" } });
    swarm.complete("t2");
    swarm.pass(hour);
    swarm.submit("t3", { affinity: "s" });
    expect(swarm.plan()[0]?.receipt.decidedBy).not.toBe("affinity");
  });

  it("is not given back to an agent whose late attempt ends after another took over", () => {
    const swarm = aSwarm();
    swarm.submit("t1", { affinity: "s" });
    swarm.plan();
    swarm.drain("a1");
    swarm.submit("t2", { affinity: "s" });
    expect(pairsOf(swarm.plan())).toEqual(["t2→a2"]);
    swarm.complete("t1");
    swarm.apply({ type: "AgentUndrained", agent: agentId("a1") });
    swarm.submit("t3", { affinity: "s" });
    expect(pairsOf(swarm.plan())).toEqual(["t3→a2"]);
  });

  it("is kept for a bounded number of keys, those used last", () => {
    const { state } = new SwarmFixture();
    for (let n = 0; n < limits.affinitiesMax + 3; n += 1)
      beginAffinity(state, aTask({ affinity: `s${n}` }), agentId("a1"), instant(n));
    beginAffinity(state, aTask({ affinity: "s3" }), agentId("a1"), instant(limits.affinitiesMax + 3));
    expect(state.affinityByKey.size).toBe(limits.affinitiesMax);
    expect(state.affinityByKey.oldest?.affinity).toBe("s4");
  });
});
