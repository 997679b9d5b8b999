// A map in order of insertion whose ends are reached in constant time, however many entries were deleted before. A
// JavaScript `Map` walks the tombstones of deleted entries whenever an iteration begins. With a million entries and the
// oldest deleted each time, finding the next oldest takes up to 100 µs.
//
// The one thing to know: a walk may be left and resumed while entries come and go. A deleted entry keeps its link to
// the next older entry, so a walk towards the oldest can continue.

export interface Entry<Key, Value> {
  readonly key: Key;
  value: Value;
  older: Entry<Key, Value> | undefined;
  newer: Entry<Key, Value> | undefined;
  isDeleted: boolean;
}

/** Finds an entry by its key: a `Map`, or an index for keys of several values. */
export interface EntryIndex<Key, Value> {
  readonly size: number;
  get(key: Key): Entry<Key, Value> | undefined;
  set(key: Key, entry: Entry<Key, Value>): unknown;
  delete(key: Key): unknown;
}

export class AgedMap<Key, Value> {
  readonly #entryByKey: EntryIndex<Key, Value>;
  #oldest: Entry<Key, Value> | undefined;
  #newest: Entry<Key, Value> | undefined;

  constructor(index: EntryIndex<Key, Value> = new Map()) {
    this.#entryByKey = index;
  }

  get size(): number {
    return this.#entryByKey.size;
  }

  get oldest(): Value | undefined {
    return this.#oldest?.value;
  }

  get oldestKey(): Key | undefined {
    return this.#oldest?.key;
  }

  has(key: Key): boolean {
    return this.#entryByKey.get(key) !== undefined;
  }

  get(key: Key): Value | undefined {
    return this.#entryByKey.get(key)?.value;
  }

  /** A new key becomes the newest; a known key keeps its position. */
  set(key: Key, value: Value): this {
    const known = this.#entryByKey.get(key);
    if (known !== undefined) {
      known.value = value;
      return this;
    }
    const before = this.#newest;
    const entry: Entry<Key, Value> = { key, value, older: before, newer: undefined, isDeleted: false };
    if (before === undefined) this.#oldest = entry;
    else before.newer = entry;
    this.#newest = entry;
    this.#entryByKey.set(key, entry);
    return this;
  }

  delete(key: Key): boolean {
    const entry = this.#entryByKey.get(key);
    if (entry === undefined) return false;
    this.#entryByKey.delete(key);
    const { older, newer } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    entry.newer = undefined; // a deleted entry must not keep later entries from the garbage collector
    entry.isDeleted = true;
    return true;
  }

  /** Oldest first. No entry may be deleted before the walk is over. */
  *[Symbol.iterator](): Generator<[Key, Value]> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield [entry.key, entry.value];
  }

  /** Oldest first. No entry may be deleted before the walk is over. */
  *values(): Generator<Value> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield entry.value;
  }

  /** Newest first. Entries may come and go between two steps: the walk skips new and deleted entries. */
  *fromNewest(): Generator<Value> {
    for (let entry = this.#newest; entry !== undefined; entry = entry.older)
      if (!entry.isDeleted) yield entry.value;
  }
}
