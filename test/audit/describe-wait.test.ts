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
  const used = { reason: "rate-limited", type: "claude", used: 1_200, tokensMax: 1_000, agents: 1 } as const;
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
