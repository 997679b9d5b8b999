// A binary heap whose items know their position, so that any item can be removed in O(log n). Not stable by itself:
// `before` must be a total order (end it with a sequence number).

import { assert } from "../assert.ts";

export interface HeapItem {
  /** Position in the heap that holds the item; −1 outside. Only the heap writes it. */
  heapAt: number;
}

export class IndexedHeap<Item extends HeapItem> {
  readonly #items: Item[] = [];
  readonly #before: (a: Item, b: Item) => boolean;

  /** @param before whether `a` leaves the heap earlier than `b`: a strict total order */
  constructor(before: (a: Item, b: Item) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): Item | undefined {
    return this.#items[0];
  }

  /** The item at a position, as in `HeapItem.heapAt`. */
  at(position: number): Item | undefined {
    return this.#items[position];
  }

  push(item: Item): void {
    assert(item.heapAt === -1, "an item is in at most one heap");
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  pop(): Item | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  remove(item: Item): void {
    const at = item.heapAt;
    assert(this.#items[at] === item, "only an item of this heap can be removed");
    item.heapAt = -1;
    const last = this.#items.pop() as Item;
    if (last !== item) this.#rise(last, this.#leafBelow(at));
  }

  /** The items that would leave first, in order, at most `countMax`: O(countMax²), independent of the heap's size. */
  first(countMax: number): Item[] {
    const found: Item[] = [];
    const edge: Item[] = this.#items.slice(0, 1);
    while (edge.length > 0 && found.length < countMax) {
      edge.sort((a, b) => (this.#before(a, b) ? -1 : 1));
      const next = edge.shift() as Item;
      found.push(next);
      const childAt = 2 * next.heapAt + 1;
      edge.push(...this.#items.slice(childAt, childAt + 2));
    }
    return found;
  }

  /** In no particular order. */
  values(): IterableIterator<Item> {
    return this.#items.values();
  }

  #rise(item: Item, from: number): void {
    let at = from;
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = this.#items[parentAt] as Item;
      if (!this.#before(item, parent)) break;
      this.#place(parent, at);
      at = parentAt;
    }
    this.#place(item, at);
  }

  /**
   * Moves the position down to a leaf; the items on the way move up. The last item of a heap nearly always belongs
   * near a leaf, so comparing it on the way down would double the comparisons.
   */
  #leafBelow(from: number): number {
    let at = from;
    for (;;) {
      let childAt = 2 * at + 1;
      let child = this.#items[childAt];
      if (child === undefined) return at;
      const right = this.#items[childAt + 1];
      if (right !== undefined && this.#before(right, child)) {
        child = right;
        childAt += 1;
      }
      this.#place(child, at);
      at = childAt;
    }
  }

  #place(item: Item, at: number): void {
    this.#items[at] = item;
    item.heapAt = at;
  }
}

/** Whether every item stands where the order requires. */
export function isHeap<Item extends HeapItem>(
  heap: IndexedHeap<Item>,
  isBefore: (a: Item, b: Item) => boolean,
): boolean {
  for (let at = 0; at < heap.size; at += 1) {
    const item = heap.at(at) as Item;
    if (item.heapAt !== at) return false;
    if (at > 0 && isBefore(item, heap.at((at - 1) >> 1) as Item)) return false;
  }
  return true;
}
