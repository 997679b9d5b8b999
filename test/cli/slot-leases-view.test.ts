// Holders and waiting requests of a resource, as `waggle resource show` and `waggle status` print them.

import pc from "picocolors";
import { expect, it } from "vitest";
import { slotLeaseName, slotLeasesText } from "../../src/cli/slot-leases-view.ts";
import { holdersText } from "../../src/cli/status-view.ts";
import type { ResourceStatus } from "../../src/protocol/slot-schemas.ts";

const view = { columns: 200, colors: pc.createColors(false) };

function aResource(overrides: Partial<ResourceStatus> = {}): ResourceStatus {
  return {
    ...{ resource: "gpt-4o", slots: 2, maxWaiters: 100, inUse: 0, waiting: 0, waitingWeight: 0 },
    ...{ tick: 0, grants: 0, utilisation: 0, alpha: 0.25, autoTune: false, alphaFrom: "policy" },
    holders: [],
    waiters: [],
    ...overrides,
  };
}

it("names the queue of an agent, the task that it serves, and the label", () => {
  expect(slotLeaseName({ agent: "desk" })).toBe("desk");
  expect(slotLeaseName({ agent: "desk", as: "analyst", label: "weekly report" })).toBe(
    'desk/analyst "weekly report"',
  );
  const task = { project: "acme", task: "t1", attempt: 2 };
  expect(slotLeaseName({ agent: "worker", task })).toBe("worker for t1#2");
});

it("groups the holders in the status by name", () => {
  const held = { handle: "h", forMs: 2_000 };
  const holders = [
    { ...held, agent: "a1" },
    { ...held, agent: "a1", forMs: 40 },
    { ...held, agent: "a1", as: "critic" },
  ];
  expect(holdersText(aResource({ inUse: 4, holders }))).toBe("a1 ×2 (2 s), a1/critic (2 s), …");
});

it("shows the purpose of slots, the time of the taking back, and the budget that tokens wait for", () => {
  const text = slotLeasesText(
    aResource({
      inUse: 1,
      waiting: 2,
      holders: [
        { agent: "desk", handle: "h1", forMs: 3_000, label: "report", idleAt: 12_000, tokens: 1_200 },
      ],
      waiters: [
        {
          agent: "worker",
          handle: "h2",
          forMs: 500,
          project: "acme",
          user: "ann",
          waitsFor: "project-budget",
        },
      ],
    }),
    10_000,
    view,
  );
  expect(text.split("\n").map((line) => line.trimEnd())).toEqual([
    "held: 1 slot",
    "  agent  for     task  project  user  tokens  held for  note",
    "  desk   report                        1,200       3 s  taken back in 2 s unless touched",
    "",
    "waiting: 2 requests",
    "  agent   for  task  project  user  tokens   waits  note",
    "  worker             acme     ann           500 ms  lacks room in the project's budget",
    "",
    "the oldest of each; slots of one lease are one row",
  ]);
});

it("of an unused resource reports no use", () => {
  expect(slotLeasesText(aResource(), 0, view)).toBe("no slot is held, and no request waits");
});
