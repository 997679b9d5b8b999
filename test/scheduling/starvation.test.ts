// Promise P11: a member that waits with an eligible task is served within the bound of docs/scheduling.md, by any rule
// of turns, against rivals that see everything. Small starvation limits make the bound tight.

import { describe, expect, it } from "vitest";
import type { Policy, ProjectTurnRule, UserTurnRule } from "../../src/state/policy.ts";
import { Contest, type Strategy, victim, type Wait } from "./contest.ts";

const ticks = 120;
const projectRules: ProjectTurnRule[] = ["clock", "recency", "deficit", "load", "fifo"];
const userRules: UserTurnRule[] = ["clock", "recency", "load", "fifo"];

/** The length of a rival's queue. */
function keepQueued(contest: Contest, project: string, count: number, submit: () => void): void {
  while (contest.queuedOf(project) < count) submit();
}

const strategies: Readonly<Record<string, Strategy>> = {
  "floods of heavy tasks": (contest) => {
    for (const rival of ["r1", "r2", "r3"])
      keepQueued(contest, rival, 8, () => contest.submit(rival, "u", { weight: 8 }));
  },
  "floods of light and urgent tasks": (contest) => {
    for (const rival of ["r1", "r2", "r3"])
      keepQueued(contest, rival, 8, () => contest.submit(rival, "u", { priority: 1 }));
  },
  "new users in the victim's project": (contest) => {
    const users = contest.swarm.state.projectById.size + contest.swarm.state.submissions;
    contest.submit(victim.project, `u${users}`, { priority: 1 });
    keepQueued(contest, "r1", 4, () => contest.submit("r1", "u"));
  },
  "new projects, that the guarantee puts first": (contest) => {
    contest.submit(`r${contest.swarm.state.submissions}`, "u", { priority: 1 });
    keepQueued(contest, "r1", 4, () => contest.submit("r1", "u"));
  },
  "rivals that come back with one task whenever theirs was taken": (contest) => {
    for (const rival of ["r1", "r2", "r3", "r4", "r5"])
      keepQueued(contest, rival, 1, () => contest.submit(rival, "u"));
    for (const rival of ["u1", "u2", "u3"]) contest.submit(victim.project, rival, { priority: 1 });
  },
  "another kind on the same agents": (contest) => {
    for (const rival of ["r1", "r2"]) {
      keepQueued(contest, rival, 6, () => contest.submit(rival, "u", { of: "l", priority: 1 }));
      contest.submit(rival, "u", { of: "k" });
    }
    contest.submit(victim.project, "u1", { of: "l" });
  },
  "tasks that are taken back while they run": (contest) => {
    for (const rival of ["r1", "r2", "r3"]) keepQueued(contest, rival, 6, () => contest.submit(rival, "u"));
    contest.submit(victim.project, "u1", { priority: 1 });
    if (contest.dice.below(2) === 0) contest.revokeOne();
  },
  "anything at random": (contest) => {
    for (let n = contest.dice.below(4); n > 0; n -= 1) {
      const rival = contest.dice.below(3) === 0 ? victim.project : `r${contest.dice.below(6)}`;
      contest.submit(rival, `u${contest.dice.below(3)}`, {
        of: contest.dice.below(4) === 0 ? "l" : "k",
        weight: 1 + contest.dice.below(9),
        priority: contest.dice.below(200),
      });
    }
    if (contest.dice.below(10) === 0) contest.revokeOne();
  },
};

function aContest(of: "project" | "user", seed: number, policy: Partial<Policy>): Contest {
  const contest = new Contest(of, seed, policy);
  for (const rival of ["r1", "r2", "r3", victim.project])
    for (let n = 0; n < 5; n += 1) contest.submit(rival, "u", { weight: 2 });
  return contest;
}

function waitsUnder(of: "project" | "user", strategy: Strategy): Wait[] {
  const waits: Wait[] = [];
  let seed = 0;
  for (const projectTurn of projectRules) {
    for (const userTurn of userRules) {
      seed += 1;
      const contest = aContest(of, seed, { projectTurn, userTurn, starvationLimit: 1 + (seed % 3) });
      for (let tick = 0; tick < ticks; tick += 1) contest.tick(strategy);
      waits.push(...contest.waits, ...(contest.current === undefined ? [] : [contest.current]));
    }
  }
  return waits;
}

describe.each(["project", "user"] as const)("a %s", (of) => {
  it.each(Object.keys(strategies))("is served within the bound against %s", (name) => {
    const waits = waitsUnder(of, strategies[name] as Strategy);
    expect(waits.filter(({ waited, bound }) => waited > bound)).toEqual([]);
    expect(waits.length).toBeGreaterThan(40);
    expect(waits.filter(({ basis }) => basis === "starvation-limit").length).toBeGreaterThan(4);
  });

  it.each([
    { starvationLimit: 0, isServed: false },
    { starvationLimit: 2, isServed: true },
  ])(
    "owes it to the starvation limit: at $starvation limit it is served: $isServed",
    ({ starvationLimit, isServed }) => {
      const contest = aContest(of, 1, { projectTurn: "fifo", userTurn: "fifo", starvationLimit });
      for (let tick = 0; tick < ticks; tick += 1) {
        contest.tick(() => {
          const rival = of === "project" ? "r1" : victim.project;
          for (let n = 0; n < 9; n += 1) contest.submit(rival, "u", { priority: 1 });
        });
      }
      expect(contest.waits.length > 0).toBe(isServed);
    },
  );
});
