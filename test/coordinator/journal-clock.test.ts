// Journal time: never back, never a jump, and slowly towards a distant wall clock.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FollowedTime, JournalClock } from "../../src/coordinator/leader/journal-clock.ts";
import { instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

function started(lastAt = 0, { clock = new ManualClock(), followed = new FollowedTime() } = {}) {
  const skews: number[] = [];
  const before = { lastAt: instant(lastAt), followed };
  return { clock, skews, time: new JournalClock(clock, before, (skewMs) => skews.push(skewMs)) };
}

describe("journal time", () => {
  it("starts at the wall clock, or where the journal is when that is later", () => {
    expect(started().time.now()).toBe(ManualClock.startMs);
    const ahead = ManualClock.startMs + 1_000;
    expect(started(ahead).time.now()).toBe(ahead);
  });

  it("passes with the monotonic clock, whole milliseconds at a time", () => {
    const { clock, time } = started();
    clock.stall(1_234.5);
    expect(time.now()).toBe(ManualClock.startMs + 1_234);
  });

  it("takes no notice of a wall clock that is a little off", () => {
    const { clock, time, skews } = started();
    clock.jumpWall(limits.clockSkewMsMax);
    clock.stall(10_000);
    expect(time.now()).toBe(ManualClock.startMs + 10_000);
    expect(skews).toEqual([]);
  });

  it.each([1, -1])("approaches one that is far off by a hundredth, and says so once: %i h", (sign) => {
    const { clock, time, skews } = started();
    clock.jumpWall(sign * 3_600_000);
    for (let second = 0; second < 100; second += 1) {
      clock.stall(1_000);
      time.now();
    }
    expect(time.now()).toBe(ManualClock.startMs + 100_000 + sign * 1_000);
    expect(skews).toHaveLength(1);
    expect(skews[0]).toBeCloseTo(sign * 3_600_000, -4);
  });

  it.each([
    ["an hour", 3_600_000],
    ["a day", 86_400_000],
  ])("goes on where it was for whoever followed it, though the wall clock is %s off", (_, offMs) => {
    for (const sign of [1, -1]) {
      const clock = new ManualClock();
      const followed = new FollowedTime();
      followed.read(instant(ManualClock.startMs), clock.monotonicMs());
      clock.jumpWall(sign * offMs);
      clock.stall(4_000);
      const { time, skews } = started(ManualClock.startMs, { clock, followed });
      expect(time.now()).toBe(ManualClock.startMs + 4_000);
      expect(skews[0]).toBeCloseTo(sign * offMs, -1);
    }
  });

  it("is not set back by a late batch, and is set forward by a batch ahead", () => {
    const followed = new FollowedTime();
    followed.read(instant(100_000), 0);
    followed.read(instant(101_000), 60_000);
    expect(followed.carriedTo(60_000)).toBe(160_000);
    followed.read(instant(500_000), 61_000);
    expect(followed.carriedTo(62_000)).toBe(501_000);
    followed.read(instant(499_000), 62_000);
    expect(followed.carriedTo(62_000)).toBe(499_000);
  });

  it("never goes back, for any clock", () => {
    const steps = fc.array(
      fc.record({
        passMs: fc.integer({ min: -50, max: 5_000 }),
        jumpMs: fc.integer({ min: -1e9, max: 1e9 }),
      }),
    );
    fc.assert(
      fc.property(steps, (all) => {
        const { clock, time } = started();
        let before = time.now();
        for (const { passMs, jumpMs } of all) {
          clock.stall(passMs);
          clock.jumpWall(jumpMs);
          const now = time.now();
          expect(now).toBeGreaterThanOrEqual(before);
          before = now;
        }
      }),
    );
  });
});
