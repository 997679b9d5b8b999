// An order that is stored in the ordered rows: each row names its position, so that no line holds a whole list.

import { refuse } from "./checked-fields.ts";

/** The position of each key, from 0. */
export function placesIn<Key>(keys: Iterable<Key>): ReadonlyMap<Key, number> {
  const places = new Map<Key, number>();
  for (const key of keys) places.set(key, places.size);
  return places;
}

/** Collects rows by their positions. */
export class Places<Item> {
  readonly #what: string;
  readonly #itemAt = new Map<number, Item>();

  /** @param what the name of the order, for errors */
  constructor(what: string) {
    this.#what = what;
  }

  /** @param place undefined for an item outside the order */
  put(place: number | undefined, item: Item): void {
    if (place === undefined) return;
    if (this.#itemAt.has(place)) refuse(`place ${place} of ${this.#what} is taken twice`);
    this.#itemAt.set(place, item);
  }

  /** @throws JournalDamagedError when a position is empty, or an item does not belong in the order */
  inOrder(count: number, belongs: (item: Item) => boolean): Item[] {
    const items = Array.from({ length: this.#itemAt.size }, (_, place) => this.#itemAt.get(place));
    const isWhole = items.length === count && items.every((item) => item !== undefined && belongs(item));
    if (!isWhole) refuse(`the order of ${this.#what} is not that of ${count} that belong there`);
    return items as Item[];
  }
}
