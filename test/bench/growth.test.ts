// The growth case `base`: the part of a window in which a base was written. The growth case `followers`: each follower
// saw the events of all tasks.

import { describe, expect, it } from "vitest";
import { follow, missedEvents, shareOf } from "../../bench/harness/growth.ts";
import type { System } from "../../bench/harness/systems.ts";
import type { Order } from "../../bench/peers/peer.ts";

it.each([
  ["no base", [], 0],
  [
    "a base before and a base after",
    [
      [0, 50],
      [250, 300],
    ],
    0,
  ],
  ["a base over the whole window", [[50, 300]], 1],
  [
    "a base that begins before, and another within",
    [
      [50, 120],
      [150, 170],
    ],
    0.4,
  ],
])("%s", (_, bases, share) => {
  const intervals = bases.map(([fromMs = 0, toMs = 0]) => ({ fromMs, toMs }));
  expect(shareOf({ fromMs: 100, toMs: 200 }, intervals)).toBeCloseTo(share);
});

describe("followers", () => {
  it("miss nothing with three events per task", () => {
    expect(missedEvents([3_000, 3_007], 1_000)).toBeUndefined();
    expect(missedEvents([3_000, 2_999, 12], 1_000)).toBe(
      "2 of 3 followers missed events: the least saw 12 of at least 3,000",
    );
  });

  it("pass the check when the last events arrive in time", async () => {
    const system = aFollowedSystem({ events: (tasks) => 3 * tasks, looksBehind: 2 });
    const check = await follow(system, 2);
    await system.ask({ op: "burst", tasks: 100 });
    await expect(check?.()).resolves.toEqual({ caughtUpMs: expect.any(Number) });
  });

  it("fail the check when events are missing", async () => {
    const system = aFollowedSystem({ events: (tasks) => 2 * tasks, looksBehind: 0 });
    const check = await follow(system, 2, 0);
    await system.ask({ op: "burst", tasks: 100 });
    await expect(check?.()).rejects.toThrow(
      "2 of 2 followers missed events: the least saw 202 of at least 300, 0 s after a window",
    );
  });

  it("need no check without a process of followers", async () => {
    const { ask } = aFollowedSystem({ events: () => 0, looksBehind: 0 });
    expect(await follow({ ask }, 0)).toBeUndefined();
  });
});

/** @param looksBehind each follower sees the events of a task only when asked so many times after its end */
function aFollowedSystem({
  events,
  looksBehind,
}: {
  readonly events: (tasks: number) => number;
  readonly looksBehind: number;
}): Pick<System, "ask"> & Required<Pick<System, "followers">> {
  const endedByLook = [0];
  let followers = 0;
  let ended = 0;
  const answer = async (order: Order) => {
    const timing = { tasks: 1, ms: 1, ratePerSecond: 1 };
    if (order.op === "burst") ended += order.tasks;
    if (order.op !== "call") return timing;
    if (order.name === "follow") followers = order.amount;
    if (order.name === "ended") return { ...timing, value: ended };
    endedByLook.push(ended);
    const seen = events(endedByLook.at(-1 - looksBehind) ?? 0);
    return { ...timing, value: Array.from({ length: followers }, () => seen) };
  };
  return { ask: answer, followers: { ask: answer } };
}
