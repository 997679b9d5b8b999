// A heap of small whole numbers (such as positions in a list), each with a key of two numbers. All data lies in two
// lists of numbers: comparing and moving touch no object. With many heaps of cold data, a heap of objects
// (indexed-heap.ts) mostly waits for memory.

import { assert } from "../assert.ts";

/** Numbers in `#entries` for each item: two of the key, then the item. */
const stride = 3;
/**
 * Children per item. They lie side by side, so reading eight waits for memory hardly longer than reading two, and the
 * heap has a third of the levels.
 */
const arity = 8;

export class KeyedHeap {
  #size = 0;
  readonly #entries: number[] = [];
  /** Position of each item; −1 outside the heap. */
  readonly #positionOf: number[] = [];

  get size(): number {
    return this.#size;
  }

  has(item: number): boolean {
    return (this.#positionOf[item] ?? -1) !== -1;
  }

  /** The item with the lowest key; −1 when the heap is empty. */
  get front(): number {
    return this.#size === 0 ? -1 : (this.#entries[2] as number);
  }

  /** First number of the front's key; NaN when the heap is empty. */
  get frontFirst(): number {
    return this.#size === 0 ? Number.NaN : (this.#entries[0] as number);
  }

  /** Second number of the front's key; NaN when the heap is empty. */
  get frontSecond(): number {
    return this.#size === 0 ? Number.NaN : (this.#entries[1] as number);
  }

  /**
   * @param item a whole number ≥ 0; memory grows with the highest item
   * @param first keys are compared by `first`, then by `second`; no two keys may be equal
   */
  push(item: number, first: number, second: number): void {
    assert(!this.has(item), "an item is in a heap once");
    while (this.#positionOf.length <= item) this.#positionOf.push(-1);
    this.#entries.push(first, second, item);
    this.#size += 1;
    this.#rise(item, first, second, this.#size - 1);
  }

  remove(item: number): void {
    assert(this.has(item), "only an item of this heap can be removed");
    const at = this.#positionOf[item] as number;
    this.#positionOf[item] = -1;
    this.#size -= 1;
    const last = this.#entries.pop() as number;
    const second = this.#entries.pop() as number;
    const first = this.#entries.pop() as number;
    if (last === item) return;
    this.#rise(last, first, second, at);
    this.#sink(last, first, second, this.#positionOf[last] as number);
  }

  /** Gives an item a new key, not lower than its present key. */
  raise(item: number, first: number, second: number): void {
    assert(this.has(item), "only an item of this heap can be given another key");
    this.#raiseAt(this.#positionOf[item] as number, first, second);
  }

  /** `raise` for the front. */
  raiseFront(first: number, second: number): void {
    assert(this.#size > 0, "an empty heap has no front");
    this.#raiseAt(0, first, second);
  }

  #raiseAt(at: number, first: number, second: number): void {
    const before = this.#entries[stride * at] as number;
    assert(
      before < first || (before === first && (this.#entries[stride * at + 1] as number) <= second),
      "a key that is raised does not become lower",
    );
    this.#sink(this.#entries[stride * at + 2] as number, first, second, at);
  }

  #rise(item: number, first: number, second: number, from: number): void {
    const entries = this.#entries;
    let at = from;
    while (at > 0) {
      const parentAt = Math.floor((at - 1) / arity);
      const parentFirst = entries[stride * parentAt] as number;
      const parentSecond = entries[stride * parentAt + 1] as number;
      if (parentFirst < first || (parentFirst === first && parentSecond <= second)) break;
      this.#place(entries[stride * parentAt + 2] as number, parentFirst, parentSecond, at);
      at = parentAt;
    }
    this.#place(item, first, second, at);
  }

  #sink(item: number, first: number, second: number, start: number): void {
    const entries = this.#entries;
    let at = start;
    for (;;) {
      const from = arity * at + 1;
      const to = Math.min(from + arity, this.#size);
      let childAt = -1;
      let childFirst = first;
      let childSecond = second;
      for (let n = from; n < to; n += 1) {
        const nFirst = entries[stride * n] as number;
        if (nFirst > childFirst) continue;
        const nSecond = entries[stride * n + 1] as number;
        if (nFirst === childFirst && nSecond >= childSecond) continue;
        childAt = n;
        childFirst = nFirst;
        childSecond = nSecond;
      }
      if (childAt === -1) break;
      this.#place(entries[stride * childAt + 2] as number, childFirst, childSecond, at);
      at = childAt;
    }
    this.#place(item, first, second, at);
  }

  #place(item: number, first: number, second: number, at: number): void {
    const entries = this.#entries;
    entries[stride * at] = first;
    entries[stride * at + 1] = second;
    entries[stride * at + 2] = item;
    this.#positionOf[item] = at;
  }
}
