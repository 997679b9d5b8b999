// What recovery is held to.

import { expect, it } from "vitest";
import { requiredMsOf } from "./required.ts";

it("is asked of leaders by T, of servers and agents whatever T is, and of nothing else", () => {
  expect(requiredMsOf("leader killed → next accept", 1_000)).toBe(2_000);
  expect(requiredMsOf("leader killed → next accept", 3_000)).toBe(5_000);
  expect(requiredMsOf("leader killed → next accept", 2_000)).toBeUndefined();
  expect(requiredMsOf("stream leader stopped → next accept", 3_000)).toBe(15_000);
  expect(requiredMsOf("agent killed → reassigned", 1_000)).toBe(12_000);
  expect(requiredMsOf("room again → next accept", 1_000)).toBeUndefined();
});
