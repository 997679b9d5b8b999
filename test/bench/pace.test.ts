// Progress of a run, the estimate of the time left, and waits for calm, on a clock of the test.

import { beforeEach, describe, expect, it } from "vitest";
import { Pace } from "../../bench/harness/pace.ts";

let nowMs: number;
let said: string[];

beforeEach(() => {
  nowMs = 0;
  said = [];
});

const plan = [
  { name: "c1024", seconds: 240 },
  { name: "c1", seconds: 120 },
];

function aPace(more: Partial<ConstructorParameters<typeof Pace>[0]> = {}): Pace {
  return new Pace({
    plan,
    calmMs: 20_000,
    say: (line) => said.push(line),
    monotonicMs: () => nowMs,
    ...more,
  });
}

/** Waits for the whole allowed time. @returns the allowed time, ms */
async function wait(pace: Pace): Promise<number> {
  let allowedMs = Number.NaN;
  await pace.calm(async (waitMs) => {
    allowedMs = waitMs;
    nowMs += waitMs;
  });
  return allowedMs;
}

describe("progress", () => {
  it("tells each step and round with the time left", () => {
    const pace = aPace();
    pace.begin("c1024");
    nowMs += 120_000;
    pace.ended(1, 2);
    pace.begin("c1");
    nowMs += 110_000;
    pace.ended(9, 10);
    expect(said).toEqual([
      "c1024; about 6 min left",
      "c1024: round 1 of 2; about 4 min left",
      "c1; about 1 min left",
      "c1: round 9 of 10; less than a minute left",
    ]);
  });

  it("follows the time that steps really take, without waits for calm", async () => {
    const pace = aPace();
    pace.begin("c1024");
    nowMs += 240_000;
    await wait(pace);
    pace.ended(1, 2);
    expect(pace.leftMs).toBe(480_000);
  });

  it("of steps outside of the plan is silent", () => {
    const pace = aPace({ plan: [] });
    pace.ended(1, 1);
    expect(said).toEqual([]);
  });
});

describe("waits for calm", () => {
  it("are bounded each", async () => {
    expect(await wait(aPace())).toBe(20_000);
  });

  it("take only the run's remaining time, so the run keeps to the limit", async () => {
    const pace = aPace({ limitMs: 400_000 });
    expect(await wait(pace)).toBe(10_000);
    for (let n = 0; n < 100; n += 1) await wait(pace);
    expect(nowMs).toBeLessThanOrEqual(40_000);
    nowMs = 500_000;
    expect(await wait(pace)).toBe(0);
  });
});
