// Bounds on recovery.

import { describe, expect, it } from "vitest";
import { requiredMsOf, tooSlow } from "./required.ts";

it("is asked of leaders by T, of servers and agents whatever T is, and of nothing else", () => {
  expect(requiredMsOf("leader killed → next accept", 1_000)).toBe(2_000);
  expect(requiredMsOf("leader killed → next accept", 3_000)).toBe(5_000);
  expect(requiredMsOf("leader killed → next accept", 2_000)).toBeUndefined();
  expect(requiredMsOf("stream leader stopped → next accept", 3_000)).toBe(15_000);
  expect(requiredMsOf("agent killed → reassigned", 1_000)).toBe(12_000);
  expect(requiredMsOf("server has room again → next accept", 1_000)).toBeUndefined();
});

describe("the short form", () => {
  it("finds a swarm that comes back late again and again, or never", () => {
    const late = { "leader killed → next accept": [59_000, 1_300, 58_000, 59_000] };
    expect(tooSlow(late, 1_000)).toEqual([
      "too slow: leader killed → next accept 59.0 s in the middle of 4; 2.0 s are required",
    ]);
    expect(tooSlow({ "agent killed → reassigned": [Number.POSITIVE_INFINITY] }, 1_000)).toHaveLength(1);
  });

  it("finds it also where a round is given up after a minute", () => {
    expect(tooSlow({ "stream leader killed → next accept": [46_000, 59_000] }, 1_000)).toHaveLength(1);
  });

  it("accepts a single round on a busy machine, and figures without a bound", () => {
    expect(tooSlow({ "leader killed → next accept": [1_300, 19_160, 1_200, 2_250] }, 1_000)).toEqual([]);
    expect(tooSlow({ "leader killed → next accept": [] }, 1_000)).toEqual([]);
    expect(tooSlow({ "healed → next accept": [59_000] }, 1_000)).toEqual([]);
  });
});
