// Snapshots and actions of the budget document that were computed elsewhere: the exact scheduler and `waggle plan`
// give the same actions, and Waggle's own rules plan every snapshot.

import { describe, expect, it } from "vitest";
import { schedule } from "../../src/scheduling/exact/budget-scheduler.ts";
import type { AssignAction, BudgetSnapshot } from "../../src/scheduling/exact/budget-snapshot.ts";
import { planSnapshot } from "../../src/sim/policy/snapshot-plan.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { readVectors } from "../support/vectors.ts";

interface Vector {
  readonly snapshot: BudgetSnapshot;
  readonly actions: readonly AssignAction[];
}

const countNames = ["projectTokenUsage", "projectActiveAgentCounts", "tasksCompletedInWindow"] as const;
const vectors = readVectors<Vector>("budget-scheduler.jsonl");

function reversedKeys(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).reverse());
}

describe("the budget scheduler", () => {
  it("has vectors to check, with actions", () => {
    expect(vectors.some(({ actions }) => actions.length > 1)).toBe(true);
  });

  it.each(vectors.map((vector, at) => [at, vector] as const))("snapshot %i", (_, { snapshot, actions }) => {
    const before = JSON.stringify(snapshot);
    expect(JSON.stringify(schedule(snapshot))).toBe(JSON.stringify(actions));
    expect(JSON.stringify(snapshot)).toBe(before);
  });

  it("does not depend on the order of keys in maps", () => {
    for (const { snapshot, actions } of vectors) {
      const reversed = Object.fromEntries(countNames.map((name) => [name, reversedKeys(snapshot[name])]));
      expect(schedule({ ...snapshot, ...reversed })).toEqual(actions);
    }
  });
});

describe("waggle plan", () => {
  it("prints the actions of the vectors, to the byte", async () => {
    const stdin = vectors.map(({ snapshot }) => JSON.stringify(snapshot)).join("\n");
    const { code, stdout } = await runIn(aShell({ stdin }), "plan", "--lines", "--rules", "budget");
    expect(code).toBe(0);
    expect(stdout).toBe(vectors.map(({ actions }) => `${JSON.stringify(actions)}\n`).join(""));
  });
});

describe("Waggle's rules", () => {
  it("plan every snapshot of the vectors", () => {
    const closed = vectors.filter(({ snapshot }) =>
      snapshot.projects.some(({ maxConcurrentAgents }) => maxConcurrentAgents === 0),
    );
    expect(closed.length).toBeGreaterThan(0);
    for (const { snapshot } of vectors) {
      const open = snapshot.projects.filter(
        ({ status, maxConcurrentAgents }) => status === "active" && maxConcurrentAgents > 0,
      );
      const ids = new Set(open.map(({ id }) => id));
      for (const { projectId } of planSnapshot(snapshot)) expect(ids).toContain(projectId);
    }
  });
});
