// The planner against the naive one, on thousands of states that legal histories lead to.

import { describe, expect, it } from "vitest";
import type { EventOf } from "../../src/core/event.ts";
import { limits } from "../../src/limits.ts";
import { Round } from "../../src/scheduling/planner.ts";
import { NaivePlanner } from "./naive-planner.ts";
import { aRandomSwarm, queuedCount, shuffleMaps } from "./random-swarm.ts";
import type { SwarmFixture } from "./swarm-fixture.ts";

const seeds = 4_000;
const policies = [{ lambda: 0.25 }, { lambda: 0.25 }, { lambda: 0 }, { lambda: 4 }];

function planBothWays(swarm: SwarmFixture, policy: { lambda: number }): EventOf<"TaskAssigned">[] {
  const round = new Round(swarm.state, swarm.at, policy);
  const naive = new NaivePlanner(swarm.state, swarm.at, policy);
  const assigned: EventOf<"TaskAssigned">[] = [];
  for (;;) {
    const expected = naive.next();
    const event = round.next();
    expect(event).toEqual(expected);
    if (event === undefined) return assigned;
    swarm.apply(event);
    assigned.push(event);
  }
}

describe("a round", () => {
  it("does what looking at everything for each pick would do, to the last word of each receipt", () => {
    const decided = new Map<string, number>();
    let ranked = 0;
    for (let seed = 0; seed < seeds; seed += 1) {
      const swarm = aRandomSwarm(seed);
      shuffleMaps(swarm, seed);
      const policy = policies[seed % policies.length] as { lambda: number };
      for (const { receipt } of planBothWays(swarm, policy)) {
        decided.set(receipt.decidedBy, (decided.get(receipt.decidedBy) ?? 0) + 1);
        ranked += receipt.candidates.length > 1 ? 1 : 0;
        for (const reason of Object.keys(receipt.ineligible)) {
          decided.set(reason, (decided.get(reason) ?? 0) + 1);
        }
        expect(Buffer.byteLength(JSON.stringify(receipt))).toBeLessThanOrEqual(limits.receiptBytesMax);
      }
      // Work-conserving: nothing that is left has an agent that would take it.
      expect(new NaivePlanner(swarm.state, swarm.at).next()).toBeUndefined();
    }
    // The states were worth it: every rule decided something, every filter kept somebody out.
    expect(ranked).toBeGreaterThan(seeds);
    for (const rule of ["only", "score", "in-flight", "longest-idle", "id", "probe"]) {
      expect([rule, (decided.get(rule) ?? 0) > 10]).toEqual([rule, true]);
    }
    for (const reason of [
      "offline",
      "draining",
      "full",
      "unresponsive",
      "suspended",
      "failed-this-task",
      "wrong-role",
    ]) {
      expect([reason, (decided.get(reason) ?? 0) > 20]).toEqual([reason, true]);
    }
  });

  it("does not depend on the order of any map", () => {
    let planned = 0;
    for (let seed = 0; seed < 300; seed += 1) {
      const [one, other] = [aRandomSwarm(seed), aRandomSwarm(seed)];
      shuffleMaps(other, seed + 1);
      planned += queuedCount(one) > 0 ? 1 : 0;
      expect(other.plan()).toEqual(one.plan());
    }
    expect(planned).toBeGreaterThan(100);
  });
});
