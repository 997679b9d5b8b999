// Why a task waits, as a sentence with the obstacle and the remedy.

import { describe, expect, it } from "vitest";
import { describeObstacle } from "../../src/audit/describe-wait.ts";
import type { AgentStanding, TaskObstacle } from "../../src/protocol/explain-schemas.ts";

const noon = () => "noon";

const standing = (agent: string, is: AgentStanding["standing"], servesKind = true): AgentStanding => ({
  agent,
  standing: is,
  servesKind,
  capacity: 1,
  free: 0,
});

it("a used up rate: type, sum, end time, and the command to raise the rate", () => {
  const limit = { reason: "rate-limited", type: "claude", tokensMax: 1_000, agents: 1 } as const;
  const used = { ...limit, used: 1_200, reserved: 0 };
  const held = { ...limit, used: 200, reserved: 800, window: "per_minute" } as const;
  expect(describeObstacle(held, { agents: [] }, noon)).toContain(
    "200 used + 800 reserved of 1,000 tokens per minute",
  );
  expect(describeObstacle({ ...used, window: "per_minute", opensAt: 5 }, { agents: [] }, noon)).toBe(
    "Agents of type claude have used up their rate, 1,200 of 1,000 tokens per minute; 1 agent of it would serve this task: from noon again, or `waggle rate set claude --window per_minute --tokens N` allows more",
  );
});

it("a pause after an attempt: until when, and the hold whose refused probe the attempt was", () => {
  const pause = { reason: "not-before", until: 5, isRetry: true } as const;
  expect(describeObstacle(pause, { agents: [] }, noon)).toBe(
    "An attempt failed: the next attempt starts no earlier than noon",
  );
  const hold = { on: "resource", name: "gpt-4o", hold: "429", by: "refusals" } as const;
  expect(describeObstacle({ ...pause, probed: hold }, { agents: [] }, noon)).toBe(
    "An attempt was the probe of resource gpt-4o, and was refused (refusals in a row without a time, the last: 429): another task makes the next probe, and the next attempt starts no earlier than noon; `waggle unhold resource gpt-4o` ends the hold now",
  );
});

it("a hold on a resource: until when, why, and at how many agents", () => {
  const hold = { on: "resource", name: "gpt-4o", hold: "429", by: "agent" } as const;
  expect(describeObstacle({ reason: "on-hold", ...hold, agents: 2, until: 5 }, { agents: [] }, noon)).toBe(
    "Resource gpt-4o is on hold until noon (429), and it refused this kind's tasks at 2 agents. Then the next task is the probe; `waggle unhold resource gpt-4o` ends the hold now",
  );
});

it("a nearly full journal: how full, and the remedy", () => {
  const tight = { reason: "journal-tight", bytes: 939, bytesMax: 1_000 } as const;
  expect(describeObstacle({ ...tight, remedy: "buy a disk" }, { agents: [] })).toMatch(
    /^The journal is 93 % full: no task is assigned until it has room, .*; if it stays full, buy a disk$/,
  );
  expect(describeObstacle(tight, { agents: [] })).toMatch(/if it stays full, run `waggle doctor`$/);
});

it("a limit on open attempts: an attempt must end, or a command raises the limit", () => {
  const textOf = (obstacle: Parameters<typeof describeObstacle>[0]) =>
    describeObstacle(obstacle, { agents: [] }, noon);
  expect(textOf({ reason: "swarm-limit", open: 4, topN: 4 })).toMatch(
    /4 of 4: an attempt must end, or `waggle policy set --top-n N` raises the maximum$/,
  );
  expect(textOf({ reason: "project-concurrency", project: "acme", open: 2, maxConcurrent: 2 })).toMatch(
    /2 of 2: an attempt must end, or `waggle project set acme --max-concurrent N` raises the maximum$/,
  );
});

describe("agents serve the kind, but none is eligible", () => {
  const textOf = (obstacle: Parameters<typeof describeObstacle>[0]) =>
    describeObstacle(obstacle, { agents: [] }, noon);

  it("when all are full: the next task, and how to add capacity", () => {
    expect(textOf({ reason: "all-full", agents: 2, taken: 3, capacity: 3 })).toBe(
      "Every agent of its kind is full: 2 agents, capacity 3 of 3 in use; no task is before it; start another agent of its kind, or restart an agent with a higher --max-concurrent",
    );
  });

  it("when each fails a filter: the filters, until when, and the remedy", () => {
    const counts = { suspended: 1, unresponsive: 2 };
    expect(textOf({ reason: "none-eligible", counts })).toBe(
      "No agent of its kind is eligible now: 1 suspended, 2 unresponsive; start another agent of its kind",
    );
    expect(textOf({ reason: "none-eligible", counts, until: 5 })).toMatch(
      /; the first from noon, or start another agent of its kind$/,
    );
  });
});

describe("a budget in its way", () => {
  const full = { tokens: 1_000, windowMs: 3_600_000, needed: 300 };
  const textOf = (spent: number, reserved: number, opensAt?: number) =>
    describeObstacle(
      {
        reason: "project-budget",
        project: "acme",
        ...full,
        spent,
        reserved,
        ...(opensAt === undefined ? {} : { opensAt }),
      },
      { agents: [] },
      noon,
    );

  it("names the command that raises it, and when room is free again", () => {
    expect(textOf(800, 0, 5)).toMatch(
      /; room again from noon, or `waggle project set acme --budget N` raises it$/,
    );
    expect(textOf(0, 800)).toMatch(/reservations end, or `waggle project set acme --budget N` raises it$/);
    const swarms = { reason: "global-budget", ...full, needed: 2_000, spent: 0, reserved: 0 } as const;
    expect(describeObstacle(swarms, { agents: [] }, noon)).toMatch(
      /; the task never fits: `waggle policy set --budget N` raises it$/,
    );
  });

  it("with a reserved rest: for which task, and what makes room for both", () => {
    const kept = { reason: "room-kept", task: "big", project: "acme", user: "ann" } as const;
    expect(describeObstacle(kept, { agents: [] }, noon)).toMatch(
      /reserved for big of acme\/ann, .* This task goes next, or when `waggle project set acme --budget N`, or/,
    );
    const { reason } = kept;
    expect(describeObstacle({ reason }, { agents: [] }, noon)).toMatch(
      /reserved for a task of a different project, .* or when `waggle policy set --budget N` has room/,
    );
  });
});

describe("no agent serves the kind", () => {
  const agents = [standing("a0", "draining", false), standing("a1", "draining"), standing("a2", "offline")];
  const textOf = (draining: number, offline: number, nearMisses: string[] = []) =>
    describeObstacle(
      { reason: "no-agent-serves-kind", kind: "ask", nearMisses, offline, draining },
      { agents },
      noon,
    );

  it("without agents: start an agent, or correct the name", () => {
    expect(textOf(0, 0, ["aks"])).toBe(
      "No agent serves ask: start an agent with --kind ask — did you mean aks?",
    );
  });

  it("with draining agents only: names an agent for `undrain`", () => {
    expect(textOf(1, 0)).toBe(
      "The only agent that serves ask is draining: `waggle undrain a1`, or start another with --kind ask",
    );
    expect(textOf(2, 0)).toMatch(/^All 2 agents that serve ask are draining: `waggle undrain a1`, or/);
  });

  it("with some or all agents offline", () => {
    expect(textOf(0, 1)).toBe(
      "The only agent that serves ask is offline: start it again, or another with --kind ask",
    );
    expect(textOf(0, 2)).toMatch(/^All 2 agents that serve ask are offline: start one again, or/);
    expect(textOf(1, 1)).toBe(
      "All 2 agents that serve ask are away, 1 draining and 1 offline: `waggle undrain a1`, or start one again, or another with --kind ask",
    );
  });
});

describe("no agent of the cheaper type serves the kind", () => {
  const obstacle = { reason: "no-agent-of-type", kind: "ask", type: "haiku" } as const;
  const textOf = (counts: {
    role?: string;
    agents: number;
    offline: number;
    draining: number;
    drained?: string;
  }) => describeObstacle({ ...obstacle, nearMisses: [], ...counts }, { agents: [] }, noon);

  it("without agents: start an agent, and why agents of other types cannot run it", () => {
    expect(textOf({ agents: 2, offline: 0, draining: 0 })).toBe(
      "No agent serves ask by type haiku: start an agent with --kind ask --type haiku (2 agents of other types cannot run it: a budget is used up)",
    );
  });

  it("with agents away: names an agent to undrain", () => {
    expect(textOf({ role: "editor", agents: 0, offline: 0, draining: 1, drained: "a1" })).toBe(
      "The only agent that serves ask in role editor by type haiku is draining: `waggle undrain a1`, or start another with --kind ask --role editor --type haiku",
    );
  });
});

describe("no agent has the labels that the task needs", () => {
  const needs = { gpu: ["a100"], region: ["eu", "us"] };
  const obstacle = { reason: "no-agent-has-labels", kind: "train", needs, unmet: needs } as const;
  const away = { agents: 2, offline: 0, draining: 0, nearMisses: [] as string[] };
  const textOf = (more: object) =>
    describeObstacle({ ...obstacle, ...away, ...more } as TaskObstacle, { agents: [] }, noon);

  it("start an agent with the labels, and how many serve the kind without", () => {
    expect(textOf({})).toBe(
      "No agent serves train with gpu=a100, and region=eu or region=us: start an agent with --kind train --label gpu=a100 --label region=eu (2 agents serve it without these labels)",
    );
  });

  it("with near misses, and what the closest agents lack", () => {
    expect(textOf({ role: "night", unmet: { gpu: ["a100"] }, nearMisses: ["gpu=a1000"], agents: 1 })).toBe(
      "No agent serves train in role night with gpu=a100, and region=eu or region=us: start an agent with --kind train --role night --label gpu=a100 --label region=eu — did you mean gpu=a1000? (1 agent serves it and lacks only gpu=a100)",
    );
  });

  it("with agents away: names an agent to undrain", () => {
    expect(textOf({ agents: 0, draining: 1, drained: "a1" })).toBe(
      "The only agent that serves train with gpu=a100, and region=eu or region=us is draining: `waggle undrain a1`, or start another with --kind train --label gpu=a100 --label region=eu",
    );
  });
});

describe("no agent serves the kind in the task's role", () => {
  const obstacle = { reason: "no-agent-has-role", kind: "ask", role: "editor" } as const;
  const textOf = (counts: { agents: number; offline: number; draining: number; drained?: string }) =>
    describeObstacle({ ...obstacle, nearMisses: [], ...counts }, { agents: [] }, noon);

  it("without agents: start an agent, and how many serve the kind without the role", () => {
    expect(textOf({ agents: 2, offline: 0, draining: 0 })).toBe(
      "No agent serves ask in role editor: start an agent with --kind ask --role editor (2 agents serve it without this role)",
    );
  });

  it("with agents away: names an agent to undrain", () => {
    expect(textOf({ agents: 1, offline: 0, draining: 1, drained: "a1" })).toBe(
      "The only agent that serves ask in role editor is draining: `waggle undrain a1`, or start another with --kind ask --role editor (1 agent serves it without this role)",
    );
    expect(textOf({ agents: 0, offline: 2, draining: 0 })).toBe(
      "All 2 agents that serve ask in role editor are offline: start one again, or another with --kind ask --role editor",
    );
  });
});
