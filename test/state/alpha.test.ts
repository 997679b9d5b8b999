// Valid choices of α, and automatic tuning.

import { describe, expect, it } from "vitest";
import {
  type AlphaChoice,
  alphaOf,
  alphaTrendTicks,
  depthsWith,
  nextAlpha,
  type TuningFacts,
} from "../../src/state/alpha.ts";

describe("alphaOf", () => {
  it.each([
    [{}, 0.25],
    [{ optimizeFor: "latency" }, 0],
    [{ optimizeFor: "balanced" }, 0.25],
    [{ optimizeFor: "throughput" }, 0.5],
    [{ alpha: 0 }, 0],
    [{ alpha: 0.7 }, 0.7],
    [{ alpha: 1 }, 1],
    [{ alpha: 0.5, autoTune: true }, 0.5],
  ] as const)("of %j is %d", (choice, alpha) => expect(alphaOf(choice)).toBe(alpha));

  it.each<[AlphaChoice, string]>([
    [{ optimizeFor: "latency", alpha: 0 }, "alpha"],
    [{ optimizeFor: "fastest" }, "optimizeFor"],
    [{ optimizeFor: "constructor" }, "optimizeFor"],
    [{ alpha: -0.01 }, "alpha"],
    [{ alpha: 1.01 }, "alpha"],
    [{ alpha: Number.NaN }, "alpha"],
    [{ alpha: "0.5" as unknown as number }, "alpha"],
    [{ alpha: 0.51, autoTune: true }, "alpha"],
    [{ alpha: Object.create(null) }, "alpha"],
    [{ optimizeFor: 5 as unknown as string }, "optimizeFor"],
    [{ optimizeFor: Symbol("latency") as unknown as string }, "optimizeFor"],
    [{ alpha: 0.2, preset: "latency" } as AlphaChoice, "preset"],
    [{ preset: "throughput" } as AlphaChoice, "preset"],
    [{ alpha: null as unknown as number }, "alpha"],
    [{ optimizeFor: null as unknown as string }, "optimizeFor"],
    [undefined as unknown as AlphaChoice, "choice"],
    [null as unknown as AlphaChoice, "choice"],
    [0.5 as unknown as AlphaChoice, "choice"],
  ])("refuses %o", (choice, field) => {
    expect(() => alphaOf(choice)).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
  });
});

describe("automatic tuning of α", () => {
  it.each([
    [undefined, "facts"],
    [0.25, "facts"],
    [{ oldestAges: [], depths: [] }, "alpha"],
    [{ alpha: 0.25, depths: [] }, "oldestAges"],
    [{ alpha: 0.25, oldestAges: [1, -1], depths: [] }, "oldestAges[1]"],
    [{ alpha: 0.25, oldestAges: [] }, "depths"],
    [{ alpha: 0.25, oldestAges: [], depths: ["1"] }, "depths[0]"],
  ])("refuses the facts %j, naming %s", (facts, field) => {
    expect(() => nextAlpha(facts as unknown as TuningFacts)).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }),
    );
  });

  const steady = Array.from({ length: alphaTrendTicks + 1 }, () => 10);
  const grown = [...steady.slice(1), 13];
  const even = [5, 5, 5];
  const uneven = [0, 0, 9];

  it("lowers α by 0.01 where waits are uneven", () => {
    expect(nextAlpha({ alpha: 0.25, oldestAges: uneven, depths: steady })).toEqual({
      from: 0.25,
      to: 0.24,
      reason: "uneven-waits",
      measured: expect.closeTo(Math.SQRT2, 12),
    });
  });

  it("moves by whole steps, however often: from 0.25 to 0 in 25 steps, and back", () => {
    const down: number[] = [];
    for (let alpha = 0.25; alpha > 0; alpha = down.at(-1) ?? 0)
      down.push(nextAlpha({ alpha, oldestAges: uneven, depths: steady })?.to ?? 0);
    expect(down).toEqual(Array.from({ length: 25 }, (_, step) => (24 - step) / 100));
    const up: number[] = [];
    for (let alpha = 0; alpha < 0.25; alpha = up.at(-1) ?? 1)
      up.push(nextAlpha({ alpha, oldestAges: even, depths: grown })?.to ?? 1);
    expect(up).toEqual(Array.from({ length: 25 }, (_, step) => (step + 1) / 100));
  });

  it("keeps α while no task waits", () => {
    const empty = steady.map(() => 0);
    expect(nextAlpha({ alpha: 0.25, oldestAges: [], depths: empty })).toBeUndefined();
    expect(nextAlpha({ alpha: 0.25, oldestAges: [1], depths: [...empty.slice(1), 1] })?.measured).toBe(1);
  });

  it("raises α by 0.01 where the queue grew by more than a fifth in 10 ticks", () => {
    expect(nextAlpha({ alpha: 0.25, oldestAges: even, depths: grown })).toEqual({
      from: 0.25,
      to: 0.26,
      reason: "growing-queue",
      measured: expect.closeTo(0.3, 12),
    });
  });

  it("checks waits first", () => {
    expect(nextAlpha({ alpha: 0.25, oldestAges: uneven, depths: grown })?.reason).toBe("uneven-waits");
  });

  it.each([
    ["exactly the thresholds", { alpha: 0.25, oldestAges: [1, 3], depths: [10, ...steady.slice(2), 12] }],
    ["nothing waiting", { alpha: 0.25, oldestAges: [], depths: [] }],
    ["nothing older than this tick", { alpha: 0.25, oldestAges: [0, 0], depths: steady }],
    ["too few ticks known", { alpha: 0.25, oldestAges: even, depths: [1, 100] }],
    ["0 and uneven", { alpha: 0, oldestAges: uneven, depths: grown }],
    ["0.5 and growing", { alpha: 0.5, oldestAges: even, depths: grown }],
  ])("stays at %s", (_, facts) => expect(nextAlpha(facts)).toBeUndefined());

  it("takes a queue that was empty as growing", () => {
    expect(nextAlpha({ alpha: 0.25, oldestAges: even, depths: [0, ...steady.slice(1)] })?.to).toBe(0.26);
  });

  it("walks from 0.25 to 0 in 25 even steps, and stops", () => {
    let alpha = 0.25;
    let steps = 0;
    for (;;) {
      const change = nextAlpha({ alpha, oldestAges: uneven, depths: steady });
      if (change === undefined) break;
      alpha = change.to;
      steps += 1;
    }
    expect({ alpha, steps }).toEqual({ alpha: 0, steps: 25 });
  });

  it("is refused above 0.5", () => {
    expect(() => nextAlpha({ alpha: 0.6, oldestAges: [], depths: [] })).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE" }),
    );
  });

  it("remembers no more depths than it compares", () => {
    let depths: number[] = [];
    for (let depth = 1; depth <= 40; depth += 1) depths = depthsWith(depths, depth);
    expect(depths).toHaveLength(alphaTrendTicks + 1);
    expect([depths[0], depths.at(-1)]).toEqual([30, 40]);
  });
});
