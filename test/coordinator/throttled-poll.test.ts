// How often something is looked at.

import { beforeEach, describe, expect, it } from "vitest";
import { ThrottledPoll } from "../../src/coordinator/throttled-poll.ts";
import { ManualClock } from "../support/manual-clock.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

let clock: ManualClock;
let looks: (() => void)[];
let throttledPoll: ThrottledPoll;

beforeEach(() => {
  clock = new ManualClock();
  looks = [];
  const look = () => new Promise<void>((resolve) => looks.push(resolve));
  throttledPoll = new ThrottledPoll({ clock, everyMs: 1_000, look });
  throttledPoll.look();
});

async function endLook(): Promise<void> {
  looks.at(-1)?.();
  await settled();
}

describe("a throttled poll", () => {
  it("looks at once, and again when the last look is old", async () => {
    await endLook();
    await clock.advance(999);
    throttledPoll.look();
    expect(looks).toHaveLength(1);
    await clock.advance(1);
    throttledPoll.look();
    expect(looks).toHaveLength(2);
  });

  it("looks one at a time, however old the last look is", async () => {
    await clock.advance(5_000);
    throttledPoll.look();
    expect(looks).toHaveLength(1);
    await endLook();
    throttledPoll.look();
    expect(looks).toHaveLength(2);
  });

  it("looks soon when told to, but not before the last look is over", async () => {
    throttledPoll.lookSoon();
    throttledPoll.look();
    expect(looks).toHaveLength(1);
    await endLook();
    throttledPoll.look();
    expect(looks).toHaveLength(2);
  });
});
