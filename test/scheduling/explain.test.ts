// Why a task waits: an answer for each obstacle, the order of the obstacles, and agreement with the planner.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentId, incarnation, instant, kind, projectId, taskId, userId } from "../../src/ids.ts";
import { explainWait, type Obstacle } from "../../src/scheduling/explain.ts";
import { Wanting } from "../../src/scheduling/explain-agents.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import type { Policy } from "../../src/state/policy.ts";
import type { ProjectSettings } from "../../src/state/settings.ts";
import { defaultKindSettings, defaultProjectSettings } from "../../src/state/state.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { join, submit, Turns } from "../support/turns.ts";
import { aRandomSwarm } from "./random-swarm.ts";
import type { SwarmFixture } from "./swarm-fixture.ts";

class Explained extends Turns {
  explain(id: string) {
    return explainWait(this.state, this.task(id), this);
  }

  /** The obstacles; the first is the answer. */
  why(id: string): Obstacle["reason"][] {
    return this.explain(id).obstacles.map(({ reason }) => reason);
  }

  submit(id: string, overrides: Parameters<typeof submit>[0] = {}): void {
    this.turn(submit({ id: taskId(id), ...overrides }));
  }

  project(settings: Partial<ProjectSettings>, id = "p"): void {
    const whole = { ...defaultProjectSettings, ...settings };
    this.configure({ type: "ProjectConfigured", project: projectId(id), settings: whole });
  }

  policy(policy: Partial<Policy>): void {
    this.configure({ type: "PolicyChanged", policy: { ...this.state.policy, ...policy } });
  }

  complete(id: string, tokens?: number): void {
    const outcome = {
      kind: "completed",
      result: "",
      latencyMs: 5,
      ...(tokens === undefined ? {} : { tokens }),
    };
    this.turn(this.report(id, outcome as Parameters<Turns["report"]>[1]));
  }
}

const budget = (tokens: number) => ({ tokens, windowMs: 60_000, mode: "wait" as const });

describe("obstacles", () => {
  it("a journal with too little room, before all obstacles but the not-before", () => {
    const swarm = new Explained();
    const tightJournal = { bytes: 93, bytesMax: 100, remedy: "buy a disk" };
    const why = (id: string) =>
      explainWait(swarm.state, swarm.task(id), { at: swarm.at, tightJournal }).obstacles;
    swarm.submit("t1");
    swarm.submit("later", { notBefore: instant(swarm.at + 1_000) });
    expect(why("t1")).toEqual([
      { reason: "journal-tight", ...tightJournal },
      expect.objectContaining({ reason: "no-agent-serves-kind" }),
    ]);
    expect(why("later").map(({ reason }) => reason)).toEqual([
      "not-before",
      "journal-tight",
      "no-agent-serves-kind",
    ]);
  });

  it("no agent serves its kind: names served kinds with a similar name", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { kinds: [kind("translate")] }));
    swarm.submit("t1", { kind: kind("transalte") });
    const [answer] = swarm.explain("t1").obstacles;
    expect(answer).toMatchObject({ reason: "no-agent-serves-kind", nearMisses: ["translate"] });
  });

  it("the agents of its kind are away: the kind is no typing error", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { kinds: [kind("translate")] }), join("gone", { kinds: [kind("transalte")] }));
    swarm.configure({ type: "AgentDrained", agent: agentId("gone") });
    swarm.submit("t1", { kind: kind("transalte") });
    expect(swarm.explain("t1").obstacles).toEqual([
      { reason: "no-agent-serves-kind", kind: "transalte", nearMisses: [], offline: 0, draining: 1 },
    ]);
  });

  it("agents that came for slots alone are not listed, online or gone", () => {
    const swarm = new Explained();
    swarm.turn(join("a1"), join("holder", { kinds: [] }), join("gone", { kinds: [] }));
    swarm.turn({ type: "LeaveAgent", agent: agentId("gone"), incarnation: swarm.agent("gone").incarnation });
    for (const id of ["r1", "t1"]) swarm.submit(id);
    expect(swarm.explain("t1").agents.map(({ agent }) => agent)).toEqual(["a1"]);
  });

  it("no agent serves the cheaper kind that a budget imposes: the kind is no typing error", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { kinds: [kind("ask")] }));
    const settings = { ...defaultKindSettings, cheaper: kind("aks") };
    swarm.configure({ type: "KindConfigured", kind: kind("ask"), settings });
    swarm.project({ budget: { ...budget(10), mode: "downgrade" } });
    swarm.submit("t1", { kind: kind("ask"), tokens: 100 });
    expect(swarm.explain("t1")).toMatchObject({
      runsAs: "aks",
      obstacles: [{ reason: "no-agent-serves-kind", kind: "aks", nearMisses: [] }],
    });
  });

  it("no agent is of the cheaper type of a budget: names other types, and offline agents", () => {
    const swarm = new Explained();
    const role = "editor";
    swarm.turn(
      join("a1", { agentType: "haiko", role }),
      join("a2", { agentType: "haiku" }),
      join("a3", { agentType: "haiku", role, kinds: [kind("other")] }),
    );
    const settings = { ...defaultKindSettings, cheaperType: "haiku" };
    swarm.configure({ type: "KindConfigured", kind: kind("k"), settings });
    swarm.project({ budget: { ...budget(10), mode: "downgrade" } });
    swarm.submit("t1", { tokens: 100, role });
    const obstacle = { reason: "no-agent-of-type", kind: "k", role, type: "haiku", offline: 0 };
    expect(swarm.explain("t1")).toMatchObject({
      cheaperType: "haiku",
      obstacles: [{ ...obstacle, nearMisses: ["haiko"], agents: 1, draining: 0 }],
    });
    expect(swarm.explain("t1")).not.toHaveProperty("runsAs");
    swarm.turn(join("a4", { agentType: "haiku", role }));
    expect(swarm.task("t1")).toMatchObject({ state: "assigned", open: { agent: "a4" } });
    swarm.submit("t2", { tokens: 100, role });
    expect(swarm.explain("t2").obstacles).toEqual([{ reason: "all-full", agents: 1, taken: 1, capacity: 1 }]);
    swarm.configure({ type: "AgentDrained", agent: agentId("a4") });
    expect(swarm.explain("t2").obstacles).toEqual([
      { ...obstacle, nearMisses: [], agents: 1, draining: 1, drained: "a4" },
    ]);
  });

  it("no agent has its role", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { role: "editor" }), join("a2"));
    swarm.submit("t1", { role: "editer" });
    const obstacle = { reason: "no-agent-has-role", kind: "k", role: "editer", offline: 0, draining: 0 };
    expect(swarm.explain("t1").obstacles).toEqual([{ ...obstacle, nearMisses: ["editor"], agents: 2 }]);
  });

  it("the agents of its role are away: the role is no typing error, and other roles do not count", () => {
    const swarm = new Explained();
    const role = "editor";
    swarm.turn(join("a1", { role }), join("a2", { role }), join("a3", { role: "editar" }), join("a4"));
    swarm.turn(join("a5", { role, kinds: [kind("other")] }));
    swarm.turn({ type: "LeaveAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
    for (const agent of ["a2", "a4"]) swarm.configure({ type: "AgentDrained", agent: agentId(agent) });
    swarm.submit("t1", { role });
    const obstacle = { reason: "no-agent-has-role", kind: "k", role, nearMisses: [] };
    const away = { ...obstacle, offline: 1, draining: 1, drained: "a2" };
    expect(swarm.explain("t1").obstacles).toEqual([{ ...away, agents: 1 }]);
    swarm.configure({ type: "AgentDrained", agent: agentId("a3") });
    expect(swarm.explain("t1").obstacles).toEqual([{ ...away, agents: 0 }]);
    swarm.turn(join("a6", { role }));
    swarm.submit("t2", { role });
    expect(swarm.why("t2")).toEqual(["all-full"]);
  });

  it("no agent has the needed labels: names missing labels, near misses, and offline agents", () => {
    const swarm = new Explained();
    swarm.turn(
      join("a1", { labels: { gpu: "h100", region: "eu" } }),
      join("a2", { labels: { gpus: "a100" } }),
      join("a3", { labels: { gpu: "a100", region: "eu" }, kinds: [kind("other")] }),
    );
    const needs = { gpu: ["a100"], region: ["eu", "us"] };
    swarm.submit("t1", { needs });
    const obstacle = { reason: "no-agent-has-labels", kind: "k", needs };
    expect(swarm.explain("t1").obstacles).toEqual([
      {
        ...{ ...obstacle, unmet: { gpu: ["a100"] }, nearMisses: ["gpu=h100"] },
        ...{ agents: 2, offline: 0, draining: 0 },
      },
    ]);
    expect(swarm.explain("t1").agents.map(({ agent, standing }) => `${agent} ${standing}`)).toEqual([
      "a1 label",
      "a2 label",
      "a3 wrong-kind",
    ]);
    swarm.turn(join("a4", { labels: { gpu: "a100", region: "us" } }));
    swarm.configure({ type: "AgentDrained", agent: agentId("a4") });
    swarm.submit("t2", { needs });
    expect(swarm.explain("t2").obstacles).toEqual([
      {
        ...{ ...obstacle, unmet: needs, nearMisses: [] },
        ...{ agents: 2, offline: 0, draining: 1, drained: "a4" },
      },
    ]);
  });

  it("all agents are offline, and none has the needed labels: a restart does not help", () => {
    const swarm = new Explained();
    const role = "editor";
    swarm.turn(
      join("a1", { labels: { gpu: "a100" }, role }),
      join("a2", { labels: { gpu: "a10" } }),
      join("a3", { labels: { gpu: "h100" }, role }),
    );
    for (const agent of ["a1", "a2", "a3"].map(agentId))
      swarm.turn({ type: "LeaveAgent", agent, incarnation: swarm.agent(agent).incarnation });
    const why = (id: string, needs: Record<string, string[]>, more = {}) => {
      swarm.submit(id, { needs, ...more });
      return swarm.explain(id).obstacles;
    };
    const away = { reason: "no-agent-has-labels", agents: 0, draining: 0 };
    const none = { ...away, offline: 0, nearMisses: ["gpu=a10", "gpu=a100", "gpu=h100"] };
    expect(why("t1", { gpu: ["a101"] })).toMatchObject([{ ...none, unmet: { gpu: ["a101"] } }]);
    expect(why("t2", { gpu: ["h100"] })).toMatchObject([{ ...away, offline: 1, nearMisses: [] }]);
    expect(why("t3", { gpu: ["a10"] }, { role })).toMatchObject([{ ...away, role, offline: 0 }]);
    expect(why("t4", { gpu: ["h100"] }, { role })).toMatchObject([{ ...away, role, offline: 1 }]);
  });

  it("every agent with its labels is full: the others do not count", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { labels: { gpu: "a100" } }), join("a2"));
    for (const id of ["r1", "t1"]) swarm.submit(id, { needs: { gpu: ["a100"] } });
    expect(swarm.explain("t1").obstacles).toEqual([{ reason: "all-full", agents: 1, taken: 1, capacity: 1 }]);
  });

  it("every agent is full: counts agents and capacity, and names the next task", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { maxConcurrent: 2 }), join("a2"), join("a3", { kinds: [kind("other")] }));
    for (const id of ["r1", "r2", "r3", "t1", "t2"]) swarm.submit(id);
    const { obstacles, position } = swarm.explain("t2");
    expect(obstacles).toEqual([{ reason: "all-full", agents: 2, taken: 3, capacity: 3 }]);
    expect(position).toMatchObject({ task: { place: 2, of: 2 }, next: { task: "t1", project: "p" } });
  });

  it("the project's budget: tokens spent, reserved and needed, and when they fit again", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { maxConcurrent: 9 }));
    swarm.project({ budget: budget(1_000) });
    swarm.submit("spent", { tokens: 500 });
    swarm.complete("spent", 500);
    swarm.submit("reserved", { tokens: 300 });
    swarm.submit("t1", { tokens: 400 });
    const [answer, ...others] = swarm.explain("t1").obstacles;
    expect(others).toEqual([]);
    expect(answer).toMatchObject({
      reason: "project-budget",
      project: "p",
      spent: 500,
      reserved: 300,
      tokens: 1_000,
      needed: 400,
    });
    const { opensAt = 0 } = answer as { opensAt?: number };
    swarm.at = instant(opensAt - 1);
    expect(swarm.why("t1")).toEqual(["project-budget"]);
    swarm.at = instant(opensAt);
    expect(swarm.why("t1")).toEqual(["later-turn"]);
    swarm.turn();
    expect(swarm.task("t1").state).toBe("assigned");
  });

  it("the swarm's budget, which time alone does not open while attempts hold it", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { maxConcurrent: 9 }));
    swarm.policy({ budget: budget(1_000) });
    swarm.submit("reserved", { tokens: 900 });
    swarm.submit("t1", { tokens: 400 });
    const [answer] = swarm.explain("t1").obstacles;
    expect(answer).toMatchObject({ reason: "global-budget", spent: 0, reserved: 900 });
    expect(answer).not.toHaveProperty("opensAt");
    expect(answer).not.toHaveProperty("project");
  });

  it("room that is kept for a task past the starvation limit", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { maxConcurrent: 9 }));
    swarm.policy({ starvationLimit: 1 });
    swarm.project({ budget: budget(1_000) });
    swarm.submit("spent", { tokens: 600 });
    swarm.complete("spent", 600);
    swarm.submit("big", { tokens: 900 });
    for (const id of ["first", "second"]) {
      swarm.submit(id, { tokens: 10, priority: 1 });
      swarm.complete(id, 0);
    }
    swarm.submit("small", { tokens: 10, priority: 1 });
    expect(swarm.explain("small").obstacles).toEqual([
      { reason: "room-kept", task: "big", project: "p", user: "u" },
    ]);
    expect(swarm.why("big")).toEqual(["project-budget"]);
  });

  it("limits on concurrent attempts", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { maxConcurrent: 9 }));
    swarm.project({ maxConcurrent: 1 });
    swarm.submit("running");
    swarm.submit("t1");
    expect(swarm.explain("t1").obstacles).toEqual([
      { reason: "project-concurrency", project: "p", open: 1, maxConcurrent: 1 },
    ]);
    swarm.policy({ topN: 1 });
    expect(swarm.explain("t1").obstacles[0]).toEqual({ reason: "swarm-limit", open: 1, topN: 1 });
  });

  it("a pause, before obstacles that pass by themselves", () => {
    const swarm = new Explained();
    swarm.turn(join("a1"));
    swarm.submit("running");
    swarm.configure({ type: "ProjectPaused", project: projectId("p") });
    swarm.submit("t1");
    expect(swarm.why("t1")).toEqual(["project-paused", "all-full"]);
    swarm.configure({ type: "SwarmPaused" });
    expect(swarm.why("t1")).toEqual(["swarm-paused", "project-paused", "all-full"]);
  });

  it("its not-before, or a retry's delay; and later obstacles", () => {
    const swarm = new Explained();
    const notBefore = instant(swarm.at + 60_000);
    swarm.submit("asked", { notBefore });
    expect(swarm.explain("asked").obstacles).toEqual([
      { reason: "not-before", until: notBefore, isRetry: false },
      { reason: "no-agent-serves-kind", kind: "k", nearMisses: [], offline: 0, draining: 0 },
    ]);
    expect(swarm.explain("asked").position).toBeUndefined();
    swarm.turn(join("a1"));
    swarm.submit("failed");
    swarm.turn(swarm.report("failed", { kind: "failed", error: "" }));
    expect(swarm.explain("failed").obstacles).toMatchObject([{ reason: "not-before", isRetry: true }]);
  });

  it("a used-up rate, alone or beside other filters", () => {
    const swarm = new Explained();
    swarm.turn(join("a1", { agentType: "claude" }), join("silent"));
    swarm.configure({ type: "AgentUnresponsive", agent: agentId("silent") });
    const settings = { window: "per_minute", tokensMax: 100, sliding: false } as const;
    swarm.configure({ type: "RateConfigured", agentType: "claude", settings });
    swarm.submit("spent", { tokens: 10 });
    swarm.complete("spent", 120);
    swarm.submit("t1", { tokens: 10 });
    const rate = {
      reason: "rate-limited",
      type: "claude",
      used: 120,
      reserved: 0,
      tokensMax: 100,
      agents: 1,
    };
    expect(swarm.explain("t1").obstacles).toMatchObject([
      { reason: "none-eligible", counts: { "rate-limited": 1, unresponsive: 1 } },
      rate,
    ]);
    swarm.configure({ type: "AgentDrained", agent: agentId("silent") });
    const [answer, ...others] = swarm.explain("t1").obstacles;
    expect(others).toEqual([]);
    expect(answer).toMatchObject({ ...rate, window: "per_minute" });
    const { opensAt = 0 } = answer as { opensAt?: number };
    swarm.at = instant(opensAt - 1);
    expect(swarm.why("t1")).toEqual(["rate-limited"]);
    swarm.at = instant(opensAt);
    expect(swarm.why("t1")).toEqual(["later-turn"]);
  });

  it("ineligible agents with different reasons, and when the first becomes eligible", () => {
    const swarm = new Explained();
    swarm.turn(join("full"), join("suspended"), join("silent"));
    swarm.submit("running");
    const until = instant(swarm.at + 5_000);
    swarm.configure({ type: "AgentSuspended", agent: agentId("silent"), kind: kind("k"), until, step: 1 });
    swarm.configure({ type: "AgentUnresponsive", agent: agentId("suspended") });
    swarm.submit("t1");
    expect(swarm.explain("t1").obstacles).toEqual([
      { reason: "none-eligible", counts: { full: 1, unresponsive: 1, suspended: 1 }, until },
    ]);
  });
});

describe("a task's turn", () => {
  it("is by project, user and task, with age, starvation limit and clocks", () => {
    const swarm = new Explained();
    swarm.turn(join("a1"));
    swarm.submit("running", { weight: 3 });
    swarm.submit("mine", { user: userId("u") });
    swarm.submit("urgent", { user: userId("u"), priority: 1 });
    swarm.submit("theirs", { project: projectId("q"), user: userId("v") });
    const { position } = swarm.explain("mine");
    expect(position).toMatchObject({
      waiting: 3,
      // q never had a grant: it goes first by the guarantee.
      project: { place: 2, of: 2, basis: "rule", starvationLimit: 40, clock: 3_000 },
      user: { place: 1, of: 1, basis: "rule", starvationLimit: 20, clock: 3_000 },
      task: { place: 2, of: 2, waited: 0, starvationLimit: 40 },
      next: { task: "theirs", project: "q", user: "v" },
    });
    expect(swarm.explain("theirs").position?.project).toMatchObject({ place: 1, basis: "guarantee" });
  });

  it("counts ticks of the kind, and reports a turn by the starvation limit", () => {
    const swarm = new Explained();
    swarm.turn(join("a1"));
    swarm.policy({ starvationLimit: 1 });
    swarm.submit("t1", { role: "nobody" });
    for (const id of ["r1", "r2"]) {
      swarm.submit(id);
      swarm.complete(id);
    }
    expect(swarm.explain("t1")).toMatchObject({
      ageTicks: 2,
      position: {
        project: { basis: "starvation-limit", waited: 2, starvationLimit: 1 },
        task: { waited: 0 },
      },
    });
  });
});

describe("explaining", () => {
  it("changes nothing", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const swarm = aRandomSwarm(seed);
        const before = fingerprint(swarm.state);
        explainAll(swarm);
        expect(fingerprint(swarm.state)).toEqual(before);
      }),
      { numRuns: 100 },
    );
  });

  it("lists the planner's next agent first, with the terms of the receipt, and names that task as next", () => {
    let assignments = 0;
    let plain = 0;
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const swarm = aRandomSwarm(seed);
        const before = explainAll(swarm);
        const first = new Planner(swarm.state).open(swarm.at).next();
        if (first === undefined) return;
        assignments += 1;
        const explained = before.get(first.task);
        const eligible = explained?.agents.filter(({ standing }) => ["feasible", "probe"].includes(standing));
        // Room may be kept for a task whose turn comes only later.
        expect(["later-turn", "room-kept"]).toContain(explained?.obstacles[0]?.reason);
        expect(eligible?.[0]?.agent).toBe(first.agent);
        expect(eligible).toHaveLength(first.receipt.feasible);
        expect(eligible?.slice(0, 3).map(({ terms }) => terms)).toEqual(first.receipt.candidates);
        // Tasks that an agent failed may have to let others by for an agent they may still have. So may tasks beside a
        // task that a budget sends to agents of another kind or type.
        // So may projects without a permitted agent.
        const isPlain =
          swarm.state.grants.accesses === 0 &&
          [...swarm.state.taskById.values()].every(({ failedBy }) => failedBy.length === 0) &&
          [...before.values()].every(({ runsAs, cheaperType }) => (runsAs ?? cheaperType) === undefined);
        if (!isPlain) return;
        plain += 1;
        expect(explained?.position?.next?.task).toBe(first.task);
      }),
      { numRuns: 300, examples: [[1_999_562_217], [796_596_189]] },
    );
    expect(assignments).toBeGreaterThan(100);
    expect(plain).toBeGreaterThan(20);
  });

  it("finds an obstacle for each task that the planner left waiting", () => {
    let explained = 0;
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const swarm = aRandomSwarm(seed);
        while (swarm.plan().length > 0);
        for (const { obstacles } of explainAll(swarm).values()) {
          explained += 1;
          expect(obstacles.map(({ reason }) => reason)).not.toContain("later-turn");
        }
      }),
      // A project's budget holds up a task that the swarm's budget sends to agents without room.
      { numRuns: 300, examples: [[1_030_239_562]] },
    );
    expect(explained).toBeGreaterThan(1_000);
  });
});

function explainAll({ state, at }: SwarmFixture) {
  const queued = [...state.taskById.values()].filter((row) => row.state === "queued");
  return new Map(queued.map((row) => [row.spec.id, explainWait(state, row, { at })]));
}

describe("a large swarm", () => {
  it("asks all agents once for all users with equal due tasks", () => {
    const swarm = new Explained();
    swarm.turn(...Array.from({ length: 500 }, (_, n) => join(`a${n}`, { kinds: [kind("k")] })));
    const { state, at } = swarm;
    let looked = 0;
    const wanting = new Wanting(
      { ...state, onlineByKind: counted(state.onlineByKind, () => (looked += 1)) },
      at,
    );
    const demand = { kind: kind("k"), role: "nobody", avoid: [] };
    for (let user = 0; user < 1_000; user += 1) expect(wanting.isByAny({ ...demand })).toBe(false);
    expect(wanting.asked).toBe(1);
    expect(looked).toBe(2);
    expect(wanting.isByAny({ ...demand, role: undefined as never })).toBe(true);
    expect(wanting.asked).toBe(2);
  });
});

/** Counts readers of a value. */
function counted<Key, Value>(map: Map<Key, Value>, count: () => void): Map<Key, Value> {
  const copy = new Map(map);
  const get = copy.get.bind(copy);
  copy.get = (key) => {
    count();
    return get(key);
  };
  return copy;
}
