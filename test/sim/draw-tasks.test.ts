// Tasks drawn for simulations: draws of one purpose shift no other draws, and the stream has the requested
// rate.

import { describe, expect, it } from "vitest";
import { drawTasks } from "../../src/sim/policy/draw-tasks.ts";
import { meanOf } from "../../src/sim/policy/statistics.ts";
import { SeededRandom } from "../../src/sim/random.ts";

const stream = { count: 10_000, everyMs: 40, kindOf: () => "call" };

describe("a stream of tasks", () => {
  it("is the same for one seed, whatever else is drawn from it", () => {
    const random = new SeededRandom("draw/0");
    const kinds = random.split("kinds");
    const kindOf = () => (kinds.chance(0.5) ? "a" : "b");
    const mixed = drawTasks({ ...stream, random, kindOf });
    expect(new Set(mixed.map(({ kind }) => kind))).toEqual(new Set(["a", "b"]));
    const plain = drawTasks({ ...stream, random: new SeededRandom("draw/0") });
    expect(mixed.map((task) => ({ ...task, kind: "call" }))).toEqual(plain);
  });

  it("arrives in order, as often as was asked, with sizes of mean 1", () => {
    const tasks = drawTasks({ ...stream, random: new SeededRandom("draw/1") });
    expect(tasks.map(({ index }) => index)).toEqual(tasks.map((_, at) => at));
    const instants = tasks.map(({ arrivesAt }) => arrivesAt);
    expect(instants).toEqual(instants.toSorted((a, b) => a - b));
    expect(instants.every(Number.isInteger)).toBe(true);
    expect((instants.at(-1) ?? 0) / stream.count).toBeCloseTo(40, -1);
    expect(meanOf(tasks.map(({ size }) => size))).toBeCloseTo(1, 1);
  });
});
