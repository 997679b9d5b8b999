// The heap against a sorted list, under random pushes, pops and removals from anywhere.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantError } from "../../src/errors.ts";
import { type HeapItem, IndexedHeap } from "../../src/state/indexed-heap.ts";

interface Item extends HeapItem {
  readonly key: number;
  readonly order: number;
}

const isBefore = (a: Item, b: Item) => (a.key !== b.key ? a.key < b.key : a.order < b.order);
const anItem = (key: number, order = 0): Item => ({ heapAt: -1, key, order });

/** Push a key, pop, or remove the item that stands at some place of those inside. */
const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ push: fc.nat(9) }) },
  fc.record({ removeAt: fc.nat(50) }),
  fc.constant("pop" as const),
);

describe("an indexed heap", () => {
  it("does what a sorted list does", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const heap = new IndexedHeap(isBefore);
        const sorted: Item[] = [];
        let pushed = 0;
        for (const operation of operations) {
          if (operation === "pop") expect(heap.pop()).toBe(sorted.shift());
          else if ("push" in operation) {
            pushed += 1;
            const item = anItem(operation.push, pushed);
            heap.push(item);
            sorted.push(item);
            sorted.sort((a, b) => (isBefore(a, b) ? -1 : 1));
          } else if (sorted.length > 0) {
            const [removed] = sorted.splice(operation.removeAt % sorted.length, 1);
            heap.remove(removed as Item);
            expect(removed?.heapAt).toBe(-1);
          }
          expect(heap.peek()).toBe(sorted[0]);
          expect(heap.size).toBe(sorted.length);
        }
        expect(new Set(heap.values())).toEqual(new Set(sorted));
      }),
      { numRuns: 200 },
    );
  });

  it("refuses to add an item of a heap, and to remove an item of no heap", () => {
    const [heap, other] = [new IndexedHeap(isBefore), new IndexedHeap(isBefore)];
    const item = anItem(1);
    heap.push(item);
    expect(() => other.push(item)).toThrow(InvariantError);
    expect(() => other.remove(item)).toThrow(InvariantError);
    heap.remove(item);
    expect(() => heap.remove(item)).toThrow(InvariantError);
    expect(heap.pop()).toBeUndefined();
  });
});
