// Why a task waits, as one sentence: that it says what to do about what is the case.

import { describe, expect, it } from "vitest";
import { describeObstacle } from "../../src/audit/describe-wait.ts";
import type { AgentStanding } from "../../src/protocol/explain-schemas.ts";

const noon = () => "noon";

const standing = (agent: string, is: AgentStanding["standing"], servesKind = true): AgentStanding => ({
  agent,
  standing: is,
  servesKind,
  places: 1,
  free: 0,
});

it("a rate that is used up: whose, how much of what, until when, and what raises it", () => {
  const limit = { reason: "rate-limited", type: "claude", tokensMax: 1_000, agents: 1 } as const;
  const used = { ...limit, used: 1_200, reserved: 0 };
  const held = { ...limit, used: 200, reserved: 800, window: "per_minute" } as const;
  expect(describeObstacle(held, { agents: [] }, noon)).toContain(
    "200 used + 800 reserved of 1,000 tokens per minute",
  );
  expect(describeObstacle({ ...used, window: "per_minute", opensAt: 5 }, { agents: [] }, noon)).toBe(
    "Agents of type claude have used up their rate, 1,200 of 1,000 tokens per minute; 1 agent of it would serve this task: from noon again, or `waggle rate set claude --tokens N` allows more",
  );
});

describe("nobody serves its kind", () => {
  const agents = [standing("a0", "draining", false), standing("a1", "draining"), standing("a2", "offline")];
  const told = (draining: number, offline: number, nearMisses: string[] = []) =>
    describeObstacle(
      { reason: "nobody-serves-kind", kind: "ask", nearMisses, offline, draining },
      { agents },
      noon,
    );

  it("when there is none: one is to be started, or the name is wrong", () => {
    expect(told(0, 0, ["aks"])).toBe("Nobody serves ask: start an agent with --kind ask — did you mean aks?");
  });

  it("when those there are drain: names one that can be taken back", () => {
    expect(told(1, 0)).toBe(
      "The only agent that serves ask is draining: `waggle undrain a1`, or start another with --kind ask",
    );
    expect(told(2, 0)).toMatch(/^All 2 agents that serve ask are draining: `waggle undrain a1`, or/);
  });

  it("when those there are are offline, or some of them", () => {
    expect(told(0, 1)).toBe(
      "The only agent that serves ask is offline: start it again, or another with --kind ask",
    );
    expect(told(0, 2)).toMatch(/^All 2 agents that serve ask are offline: start one again, or/);
    expect(told(1, 1)).toBe(
      "All 2 agents that serve ask are away, 1 draining and 1 offline: `waggle undrain a1`, or start one again, or another with --kind ask",
    );
  });
});

describe("nobody of the type that a budget has it go to serves it", () => {
  const obstacle = { reason: "nobody-of-type", kind: "ask", type: "haiku" } as const;
  const told = (counts: {
    role?: string;
    agents: number;
    offline: number;
    draining: number;
    drained?: string;
  }) => describeObstacle({ ...obstacle, nearMisses: [], ...counts }, { agents: [] }, noon);

  it("when there is none: one is to be started, and why others may not have it", () => {
    expect(told({ agents: 2, offline: 0, draining: 0 })).toBe(
      "Nobody serves ask by type haiku: start an agent with --kind ask --type haiku (2 agents of other types may not: a budget is used up)",
    );
  });

  it("when those there are are away: names one that can be taken back", () => {
    expect(told({ role: "editor", agents: 0, offline: 0, draining: 1, drained: "a1" })).toBe(
      "The only agent that serves ask in role editor by type haiku is draining: `waggle undrain a1`, or start another with --kind ask --role editor --type haiku",
    );
  });
});

describe("nobody serves it in its role", () => {
  const obstacle = { reason: "nobody-has-role", kind: "ask", role: "editor" } as const;
  const told = (counts: { agents: number; offline: number; draining: number; drained?: string }) =>
    describeObstacle({ ...obstacle, nearMisses: [], ...counts }, { agents: [] }, noon);

  it("when there is none: one is to be started, and what others serve it as", () => {
    expect(told({ agents: 2, offline: 0, draining: 0 })).toBe(
      "Nobody serves ask in role editor: start an agent with --kind ask --role editor (2 agents serve it in no role or another)",
    );
  });

  it("when those there are are away: names one that can be taken back", () => {
    expect(told({ agents: 1, offline: 0, draining: 1, drained: "a1" })).toBe(
      "The only agent that serves ask in role editor is draining: `waggle undrain a1`, or start another with --kind ask --role editor (1 agent serves it in no role or another)",
    );
    expect(told({ agents: 0, offline: 2, draining: 0 })).toBe(
      "All 2 agents that serve ask in role editor are offline: start one again, or another with --kind ask --role editor",
    );
  });
});
