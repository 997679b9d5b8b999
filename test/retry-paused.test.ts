// Repeating an attempt: its pauses, what ends them, and when it is given up.

import { lastValueFrom, NEVER, Subject } from "rxjs";
import { describe, expect, it } from "vitest";
import { backOffMs } from "../src/back-off.ts";
import { pauseAfter, retried, retryPaused, TryAgain } from "../src/retry-paused.ts";
import { ManualClock, settled } from "./client/manual-clock.ts";

const backOff = { pauseMs: 50, pauseMsMax: 1_000 };
/** As late as chance allows. */
const random = { next: () => 1 - Number.EPSILON };

/** An attempt that fails so often before it succeeds, and when each was made. */
function attempts(clock: ManualClock, { failing }: { readonly failing: number }) {
  const startedAt = clock.monotonicMs();
  const madeAt: number[] = [];
  const attempt = async (failures: number) => {
    madeAt.push(clock.monotonicMs() - startedAt);
    if (failures < failing) throw new TryAgain();
    return failures;
  };
  return { attempt, madeAt };
}

describe("a repeated attempt", () => {
  it("is made until it succeeds, after pauses that double up to the longest", async () => {
    const clock = new ManualClock();
    const { attempt, madeAt } = attempts(clock, { failing: 7 });
    const succeeded = lastValueFrom(retryPaused(attempt, { clock, random, backOff }));
    await clock.advance(5_000);
    expect(await succeeded).toBe(7);
    expect(madeAt.map(Math.round)).toEqual([0, 50, 150, 350, 750, 1_550, 2_550, 3_550]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("is made at once when there is hope", async () => {
    const clock = new ManualClock();
    const hurry$ = new Subject<void>();
    const { attempt, madeAt } = attempts(clock, { failing: 1 });
    const succeeded = lastValueFrom(retryPaused(attempt, { clock, random, backOff, hurry$ }));
    await settled();
    hurry$.next();
    expect(await succeeded).toBe(1);
    expect(madeAt).toEqual([0, 0]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("ends without a value when it is stopped, in an attempt or in a pause", async () => {
    const clock = new ManualClock();
    const stop$ = new Subject<void>();
    const inPause = retryPaused(attempts(clock, { failing: 9 }).attempt, { clock, random, backOff, stop$ });
    const inAttempt = retryPaused(() => NEVER, { clock, random, backOff, stop$ });
    const ended = [inPause, inAttempt].map((each) => lastValueFrom(each, { defaultValue: "nothing" }));
    await settled();
    stop$.next();
    expect(await Promise.all(ended)).toEqual(["nothing", "nothing"]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("ends with any other error", async () => {
    const attempt = async () => {
      throw new Error("a bug");
    };
    const repeated = retryPaused(attempt, { clock: new ManualClock(), random, backOff });
    await expect(lastValueFrom(repeated)).rejects.toThrow("a bug");
  });

  it("counts failures anew at each begin", async () => {
    const clock = new ManualClock();
    const { attempt, madeAt } = attempts(clock, { failing: 2 });
    const repeated = retryPaused(attempt, { clock, random, backOff });
    for (const _ of ["first", "second"]) {
      const succeeded = lastValueFrom(repeated);
      await clock.advance(500);
      await succeeded;
    }
    expect(madeAt.map(Math.round)).toEqual([0, 50, 150, 500, 550, 650]);
  });
});

it("a pause ends once, though hope comes again and again", async () => {
  const hurry$ = new Subject<void>();
  let ends = 0;
  pauseAfter(1, { clock: new ManualClock(), random, backOff, hurry$ }).subscribe(() => {
    ends += 1;
  });
  hurry$.next();
  hurry$.next();
  expect(ends).toBe(1);
});

it.each([
  [1, 0, 25],
  [1, 1, 50],
  [3, 0, 100],
  [3, 1, 200],
  [9, 0, 500],
  [2_000, 1, 1_000],
])("after %i failures, at chance %d, the pause is %d ms", (failures, chance, ms) => {
  expect(backOffMs(backOff, failures, chance)).toBe(ms);
});

describe("a repeated attempt with a hint about the next attempt", () => {
  it("waits no shorter than it was asked to, and counts anew from progress", async () => {
    const clock = new ManualClock();
    const startedAt = clock.monotonicMs();
    const madeAt: number[] = [];
    const says = [{ atLeastMs: 300 }, {}, {}, { isProgress: true }];
    const attempt = async () => {
      madeAt.push(clock.monotonicMs() - startedAt);
      const options = says[madeAt.length - 1];
      if (options !== undefined) throw new TryAgain(options);
    };
    const succeeded = retried(attempt, { clock, random, backOff });
    await clock.advance(5_000);
    await succeeded;
    expect(madeAt.map(Math.round)).toEqual([0, 300, 400, 600, 650]);
  });

  it("is given up before a pause longer than the remaining time, with the final error", async () => {
    const clock = new ManualClock();
    const attempt = async () => {
      throw new TryAgain({ otherwise: () => new Error("no leader") });
    };
    const given = { clock, random, backOff, giveUpAtMs: clock.monotonicMs() + 200 };
    const repeated = expect(retried(attempt, given)).rejects.toThrow("no leader");
    await clock.advance(149);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    await repeated;
    expect(clock.pendingTimers).toBe(0);
  });

  it("is given up with its cause where it says nothing else", async () => {
    const clock = new ManualClock();
    const attempt = async () => {
      throw new TryAgain({}, { cause: new Error("unknown task") });
    };
    const given = { clock, random, backOff, giveUpAtMs: clock.monotonicMs() };
    await expect(retried(attempt, given)).rejects.toThrow("unknown task");
  });
});
