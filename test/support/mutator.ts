// Changes messages at random, for checks of messages: the same seed gives the same changes.

/** Numbers in [0, 1) that repeat in each run (mulberry32). */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Mutator {
  readonly #next: () => number;
  readonly #strange: readonly unknown[];

  /** @param strange values that JSON can hold and that a field may wrongly have */
  constructor(seed: number, strange: readonly unknown[]) {
    this.#next = chance(seed);
    this.#strange = strange;
  }

  below(count: number): number {
    return Math.floor(this.#next() * count);
  }

  oneOf<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value;
  }

  /** A copy, which `mutated` may change. */
  copyOfOne<Value>(values: readonly Value[]): Value {
    const value = this.oneOf(values);
    return typeof value === "object" ? structuredClone(value) : value;
  }

  several<Item>(make: () => Item): Item[] {
    return Array.from({ length: this.below(3) }, make);
  }

  /** A subset of the fields, each of which is in a third of all subsets. */
  some(fields: Record<string, unknown>): Record<string, unknown> {
    return Object.fromEntries(Object.entries(fields).filter(() => this.below(3) === 0));
  }

  /** The fields, in one of `cases` cases. */
  oneIn(cases: number, fields: () => object): object {
    return this.below(cases) === 0 ? fields() : {};
  }

  /** A subset of the fields, each of which is in two thirds of all subsets. */
  most(fields: Record<string, unknown>): Record<string, unknown> {
    return Object.fromEntries(Object.entries(fields).filter(() => this.below(3) > 0));
  }

  /** Changes, removes or adds up to three values anywhere in the message, which is the caller's no more. */
  mutated(message: object): Mutated {
    const whole: Owner = { message };
    const changed: string[] = [];
    for (let times = this.below(4); times > 0; times -= 1) {
      const path = this.#mutate(whole);
      if (path !== undefined) changed.push(path);
    }
    return { message: whole["message"], changed };
  }

  /** Returns the path of a value that it changed or removed. */
  #mutate(whole: Owner): string | undefined {
    const { owner, key, path } = this.#anyPlace(placesIn(whole));
    const kind = Array.isArray(owner) || owner === whole ? 2 : this.below(4);
    if (kind === 1) {
      const name = this.oneOf([`${key}x`, "__proto__", "constructor"]);
      const value = this.copyOfOne(this.#strange);
      Object.defineProperty(owner, name, { value, enumerable: true, configurable: true, writable: true });
      return undefined;
    }
    const before = owner[key];
    if (kind === 0) delete owner[key];
    else owner[key] = this.copyOfOne(this.#strange);
    return owner[key] === before ? undefined : path;
  }

  /** Each path is as likely as any other, so that the fields of long lists do not hide the rest. */
  #anyPlace(places: readonly Place[]): Place {
    const chosen = this.oneOf([...new Set(places.map(({ path }) => path))]);
    return this.oneOf(places.filter(({ path }) => path === chosen));
  }
}

export interface Mutated {
  readonly message: unknown;
  /** Paths of the values that were changed or removed, as in `fieldsOf`. */
  readonly changed: readonly string[];
}

/** Path of a field within its message: `tasks[].kind`. Items of a list have one path. */
export function fieldPath(owner: string, key: string, isItem: boolean): string {
  if (isItem) return `${owner}[]`;
  return owner === "" ? key : `${owner}.${key}`;
}

type Owner = Record<string, unknown>;

interface Place {
  readonly owner: Owner;
  readonly key: string;
  readonly path: string;
}

/** The place of the message, and all places in it. */
function placesIn(whole: Owner): Place[] {
  const places: Place[] = [{ owner: whole, key: "message", path: "" }];
  addPlaces(whole["message"], "", places);
  return places;
}

function addPlaces(owner: unknown, ownerPath: string, places: Place[]): void {
  if (typeof owner !== "object" || owner === null) return;
  const isList = Array.isArray(owner);
  for (const [key, value] of Object.entries(owner)) {
    const path = fieldPath(ownerPath, key, isList);
    places.push({ owner: owner as Owner, key, path });
    addPlaces(value, path, places);
  }
}
