// Drawing of faults: the faults stay within the promises of a swarm.

import { expect, it } from "vitest";
import { drawSchedule, ISOLATED_MS_MAX } from "../../../src/sim/fault/schedule.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const nodes = { coordinators: ["c1", "c2"], agents: ["a1"], clients: ["k1"] };

it("a leader is isolated no longer than the bound, overlapping faults added up", () => {
  const longest = Array.from({ length: 200 }, (_, seed) => {
    const drawn = drawSchedule(new SeededRandom(String(seed)), {
      nodes,
      untilMs: 600_000,
      without: new Set(),
    });
    let longestMs = 0;
    let isolated = { fromMs: 0, untilMs: Number.NEGATIVE_INFINITY };
    for (const { kind, atMs, forMs } of drawn) {
      if (kind !== "isolated") continue;
      const fromMs = atMs <= isolated.untilMs ? isolated.fromMs : atMs; // a period within the last
      isolated = { fromMs, untilMs: Math.max(isolated.untilMs, atMs + forMs) };
      longestMs = Math.max(longestMs, isolated.untilMs - fromMs);
    }
    return longestMs;
  });
  expect(Math.max(...longest)).toBeLessThanOrEqual(ISOLATED_MS_MAX);
  expect(Math.max(...longest)).toBeGreaterThan(ISOLATED_MS_MAX / 2);
});
