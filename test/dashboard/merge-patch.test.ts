// A patch leads from one state to the next, whatever the states, and is empty only between equal ones.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { patchBetween, patched } from "../../src/dashboard/merge-patch.ts";

/** No null: no state contains it. */
const states = fc.object({
  values: [fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 })],
  key: fc.constantFrom("a", "b", "c", "d"),
  maxDepth: 3,
});

describe("merge patches (RFC 7396)", () => {
  it("lead from any state to any other", () => {
    fc.assert(
      fc.property(states, states, (before, after) => {
        const patch = patchBetween(before, after);
        if (patch === undefined) expect(before).toEqual(after);
        else expect(patched(before, JSON.parse(JSON.stringify(patch)))).toEqual(after);
      }),
    );
  });

  it("name only new, changed and removed rows", () => {
    const before = { rows: { a: { n: 1, m: 2 }, b: { n: 2 } }, list: [1, 2] };
    const after = { rows: { a: { n: 1, m: 3 }, c: { n: 3 } }, list: [1, 2] };
    expect(patchBetween(before, after)).toEqual({ rows: { a: { m: 3 }, b: null, c: { n: 3 } } });
    expect(patchBetween(after, after)).toBeUndefined();
    expect(patchBetween({ list: [1] }, { list: [1, 2] })).toEqual({ list: [1, 2] });
    expect(patchBetween({ a: 1, b: undefined }, { a: 1 })).toBeUndefined();
  });

  it("take ids of users as ids, whatever they are called", () => {
    const before: unknown = JSON.parse('{"rows":{"constructor":{"n":1},"a":{"n":1}}}');
    const after: unknown = JSON.parse('{"rows":{"__proto__":{"n":2},"a":{"n":1}}}');
    const patch = JSON.stringify(patchBetween(before, after));
    expect(JSON.stringify(patched(before, JSON.parse(patch)))).toBe(
      '{"rows":{"a":{"n":1},"__proto__":{"n":2}}}',
    );
    expect("n" in {}).toBe(false);
  });
});
