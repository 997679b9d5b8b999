// Every wait ends, and no wait outlives its cause.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { within } from "./within.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = new Promise<never>(() => undefined);

it("ends with what was waited for", async () => {
  const waiting = expect(within(2_000, "the witness ends", never)).rejects.toThrow(
    "after 2 s it is still not so that the witness ends",
  );
  await vi.advanceTimersByTimeAsync(2_000);
  await waiting;
});

it.each([
  ["resolves", () => Promise.resolve(7), { status: "fulfilled", value: 7 }],
  ["rejects", () => Promise.reject(new Error("why")), { status: "rejected", reason: new Error("why") }],
])("settles like the awaited promise, which %s, and leaves no timer", async (_, settle, outcome) => {
  expect(await Promise.allSettled([within(2_000, "it ends", settle())])).toEqual([outcome]);
  expect(vi.getTimerCount()).toBe(0);
});
