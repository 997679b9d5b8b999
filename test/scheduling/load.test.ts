// LOCO's load function.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadOf, loads, type Queue } from "../../src/scheduling/load.ts";

const queue = fc.record({
  queueDepth: fc.double({ min: 0, max: 1e9, noNaN: true }),
  oldestAge: fc.nat(1e9),
});
const alpha = fc.double({ min: 0, max: 1, noNaN: true });

describe("L(i)", () => {
  it("is 0 without waiting work", () => {
    expect(loads([{ queueDepth: 0, oldestAge: 0 }], 0.25)).toEqual([0]);
    expect(loads([], 0.25)).toEqual([]);
  });

  it("drops only the term whose maximum is 0", () => {
    expect(loads([{ queueDepth: 5, oldestAge: 0 }], 0.25)).toEqual([0.25]);
    expect(loads([{ queueDepth: 0, oldestAge: 5 }], 0.25)).toEqual([0.75]);
  });

  it("lies in [0, 1], and is exactly 1 for the maximum of both", () => {
    fc.assert(
      fc.property(fc.array(queue, { minLength: 1, maxLength: 20 }), alpha, (queues, a) => {
        const leader: Queue = { queueDepth: 1e9, oldestAge: 1e9 };
        const all = loads([...queues, leader], a);
        expect(all.at(-1)).toBe(1);
        for (const load of all) expect(load >= 0 && load <= 1).toBe(true);
      }),
    );
  });

  it("is relative: the unit of weight does not matter", () => {
    const one = { queueDepth: 3, oldestAge: 4 };
    expect(loadOf(one, { queueDepth: 12, oldestAge: 8 }, 0.25)).toBe(
      loadOf({ ...one, queueDepth: 3 * 1024 }, { queueDepth: 12 * 1024, oldestAge: 8 }, 0.25),
    );
  });
});
