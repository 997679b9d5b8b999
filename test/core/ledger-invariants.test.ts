// The checkers of budgets see violations: each is shown a broken state.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkInvariants } from "../../src/core/invariants.ts";
import { Succession } from "../../src/core/succession.ts";
import { instant, projectId, taskId } from "../../src/ids.ts";
import type { OpenAttempt, SwarmState } from "../../src/state/state.ts";
import { liveTask } from "../support/task-refs.ts";
import { LedgerSwarm } from "./ledger-fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: what is broken here is what the types forbid
type Mutable = any;

const rateRow = ({ ratesByType }: SwarmState, type: string): Mutable => ratesByType.get(type)?.[0];

/** A budget with something spent and something reserved, rates of both sorts, and a lost attempt. */
function aSpendingSwarm(): LedgerSwarm {
  const swarm = new LedgerSwarm();
  swarm.setRate("claude");
  swarm.setRate("codex", { sliding: false });
  swarm.setBudget();
  swarm.setPolicy({ budget: { tokens: 2_000, windowMs: 60_000, mode: "wait" } });
  swarm.join("a1", { agentType: "claude" });
  for (const id of ["t1", "t2"]) {
    swarm.submit(id, { tokens: 100 });
    swarm.assign(id, "a1");
    swarm.pass(5_000);
    if (id === "t1") swarm.report(swarm.last("TaskAssigned"), { kind: "completed", result: "", tokens: 70 });
  }
  return swarm;
}

const open = (state: SwarmState) => liveTask(state, "t2")?.open as OpenAttempt & Mutable;
const row = (state: SwarmState) => state.projectById.get(projectId("p")) as Mutable;

const breaks: readonly (readonly [number, what: string, doIt: (state: SwarmState) => void])[] = [
  [
    33,
    "the swarm reserves more than its attempts",
    (state) => {
      state.ledger.reserved += 1;
    },
  ],
  [
    33,
    "a project has returned a reservation that is still held",
    (state) => {
      row(state).ledger.reserved = 0;
    },
  ],
  [
    34,
    "an open attempt of the swarm is not counted",
    (state) => {
      state.openAttempts -= 1;
    },
  ],
  [
    34,
    "an open attempt of a project is counted twice",
    (state) => {
      row(state).openAttempts += 1;
    },
  ],
  [34, "a project is gone before its attempts", (state) => void state.projectById.delete(projectId("p"))],
  [
    35,
    "a window holds more than its buckets",
    (state) => {
      state.ledger.usage.held += 1;
    },
  ],
  [
    35,
    "a bucket is in the future",
    (state) => {
      row(state).ledger.spent.buckets[0].step += 100;
    },
  ],
  [
    35,
    "buckets are out of order",
    (state) => {
      const { spent } = row(state).ledger;
      spent.buckets.push({ ...spent.buckets[0], tokens: 5 });
      spent.held += 5;
    },
  ],
  [
    35,
    "a budget has no window",
    (state) => {
      state.ledger.spent = undefined;
    },
  ],
  [
    35,
    "a window is of another length than its budget",
    (state) => {
      row(state).ledger.spent.windowMs = 1;
    },
  ],
  [
    35,
    "a rate's window holds more than its buckets",
    (state) => {
      rateRow(state, "claude").use.sliding.held += 1;
    },
  ],
  [
    35,
    "a rate's window begins in the future",
    (state) => {
      rateRow(state, "codex").use.restarting.startedAt = instant(9e15);
    },
  ],
  [
    35,
    "a rate is kept for another window",
    (state) => {
      rateRow(state, "codex").settings = {
        window: "per_day",
        tokensMax: 1,
        sliding: true,
      };
    },
  ],
  [35, "a project with a budget is not listed", (state) => state.budgetedProjects.clear()],
  [
    35,
    "an open attempt waits to be charged as lost",
    (state) => void state.uncharged.set(`a1 a1-1 ${open(state).token}`, open(state)),
  ],
];

const steps: readonly (readonly [number, what: string, doIt: (swarm: LedgerSwarm) => void])[] = [
  [36, "an assignment exceeds its project's budget", ({ state }) => overspend(state, row(state).ledger)],
  [36, "an assignment exceeds the swarm's budget", ({ state }) => overspend(state, state.ledger)],
];

function overspend(state: SwarmState, ledger: SwarmState["ledger"]): void {
  const attempt = { ...open(state), number: 77, tokensReserved: 5_000 };
  state.agentById.get(attempt.agent)?.open.set(attempt.number, attempt);
  ledger.reserved += attempt.tokensReserved;
}

describe("the checkers of budgets", () => {
  it("find nothing in a sound swarm", () => {
    expect(checkInvariants(aSpendingSwarm().state)).toEqual([]);
  });

  it.each(breaks)("see that %i is broken: %s", (number, _, doIt) => {
    const { state } = aSpendingSwarm();
    doIt(state);
    expect(checkInvariants(state).map((violation) => violation.number)).toContain(number);
  });

  it.each(steps)("see a violation of %i between two batches: %s", (number, _, doIt) => {
    const swarm = aSpendingSwarm();
    const succession = new Succession();
    succession.check(swarm.state);
    doIt(swarm);
    expect(succession.check(swarm.state).map((violation) => violation.number)).toEqual([number]);
  });

  it("stop an assignment beyond a budget", () => {
    const swarm = aSpendingSwarm();
    swarm.submit("t3", { tokens: 1_000 });
    const assigned = swarm.last("TaskAssigned");
    const beyond = {
      ...assigned,
      task: taskId("t3"),
      number: (assigned.number + 1) as never,
      tokensReserved: 831,
    };
    expect(() => swarm.record(beyond)).toThrow(/the assignment of t3 fits the budget of p/);
  });

  it("stand in docs/invariants.md with their numbers", () => {
    const page = readFileSync(fileURLToPath(new URL("../../docs/invariants.md", import.meta.url)), "utf8");
    for (const number of new Set([...breaks, ...steps].map(([each]) => each)))
      expect(page).toMatch(new RegExp(`^\\| ${number} \\|`, "m"));
  });
});
