// Drawing of faults: the faults stay within the promises of a swarm.

import { expect, it } from "vitest";
import { ALONE_MS_MAX, drawSchedule } from "../../../src/sim/fault/schedule.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const nodes = { coordinators: ["c1", "c2"], agents: ["a1"], clients: ["k1"] };

it("a leader is alone no longer than the bound, overlapping faults added up", () => {
  const longest = Array.from({ length: 200 }, (_, seed) => {
    const drawn = drawSchedule(new SeededRandom(String(seed)), {
      nodes,
      untilMs: 600_000,
      without: new Set(),
    });
    let longestMs = 0;
    let alone = { fromMs: 0, untilMs: Number.NEGATIVE_INFINITY };
    for (const { kind, atMs, forMs } of drawn) {
      if (kind !== "alone") continue;
      const fromMs = atMs <= alone.untilMs ? alone.fromMs : atMs; // a period within the last
      alone = { fromMs, untilMs: Math.max(alone.untilMs, atMs + forMs) };
      longestMs = Math.max(longestMs, alone.untilMs - fromMs);
    }
    return longestMs;
  });
  expect(Math.max(...longest)).toBeLessThanOrEqual(ALONE_MS_MAX);
  expect(Math.max(...longest)).toBeGreaterThan(ALONE_MS_MAX / 2);
});
