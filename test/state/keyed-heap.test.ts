// The heap of keys against a sorted list, under random pushes, raises and removals from anywhere.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantError } from "../../src/errors.ts";
import { KeyedHeap } from "../../src/state/keyed-heap.ts";

const items = Array.from({ length: 42 }, (_, item) => item);

/** Push, raise or remove some item; of the same first number many, so that the second decides. */
const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ push: fc.nat(40), first: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ raise: fc.nat(40), by: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ raiseFrontBy: fc.nat(2) }) },
  fc.record({ remove: fc.nat(40) }),
);

/** The plainest equivalent: items with their keys, sorted for each question. */
class Sorted {
  readonly #keyOf = new Map<number, readonly [first: number, second: number]>();
  #keys = 0;

  get size(): number {
    return this.#keyOf.size;
  }

  has(item: number): boolean {
    return this.#keyOf.has(item);
  }

  /** A key of that first number that no other has; the second may be of either sign. */
  give(item: number, first: number): readonly [first: number, second: number] {
    this.#keys += 1;
    const key = [first, this.#keys - 100] as const;
    this.#keyOf.set(item, key);
    return key;
  }

  firstOf(item: number): number {
    return this.#keyOf.get(item)?.[0] as number;
  }

  remove(item: number): void {
    this.#keyOf.delete(item);
  }

  get lowest() {
    return [...this.#keyOf].sort(([, a], [, b]) => a[0] - b[0] || a[1] - b[1])[0];
  }
}

describe("a keyed heap", () => {
  it("does what a sorted list does", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200, size: "max" }), (operations) => {
        const heap = new KeyedHeap();
        const sorted = new Sorted();
        for (const operation of operations) {
          if ("push" in operation && !sorted.has(operation.push)) {
            heap.push(operation.push, ...sorted.give(operation.push, operation.first));
          } else if ("raise" in operation && sorted.has(operation.raise)) {
            const first = sorted.firstOf(operation.raise) + operation.by;
            heap.raise(operation.raise, ...sorted.give(operation.raise, first));
          } else if ("raiseFrontBy" in operation && sorted.lowest !== undefined) {
            const [item, [first]] = sorted.lowest;
            heap.raiseFront(...sorted.give(item, first + operation.raiseFrontBy));
          } else if ("remove" in operation && sorted.has(operation.remove)) {
            heap.remove(operation.remove);
            sorted.remove(operation.remove);
          }
          const [front, [first, second]] = sorted.lowest ?? [-1, [Number.NaN, Number.NaN]];
          const known = items.filter((item) => heap.has(item));
          expect(known).toEqual(items.filter((item) => sorted.has(item)));
          expect([heap.front, heap.frontFirst, heap.frontSecond, heap.size]).toEqual([
            front,
            first,
            second,
            sorted.size,
          ]);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("refuses to add an item again, and to raise or remove an unknown item", () => {
    const heap = new KeyedHeap();
    heap.push(3, 1, 1);
    expect(() => heap.push(3, 2, 2)).toThrow(InvariantError);
    for (const absent of [0, 3, 7]) {
      if (absent === 3) heap.remove(3);
      expect(() => heap.raise(absent, 5, 5)).toThrow(InvariantError);
      expect(() => heap.remove(absent)).toThrow(InvariantError);
    }
    expect(() => heap.raiseFront(1, 1)).toThrow(InvariantError);
  });

  it("refuses a lower key", () => {
    const heap = new KeyedHeap();
    heap.push(3, 1, 5);
    for (const [first, second] of [
      [0, 9],
      [1, 4],
    ] as const) {
      expect(() => heap.raise(3, first, second)).toThrow(InvariantError);
      expect(() => heap.raiseFront(first, second)).toThrow(InvariantError);
    }
    heap.raise(3, 1, 5);
    expect([heap.frontFirst, heap.frontSecond]).toEqual([1, 5]);
  });
});
