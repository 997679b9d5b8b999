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

  several<Item>(make: () => Item): Item[] {
    return Array.from({ length: this.below(3) }, make);
  }

  /** A subset of the fields. */
  some(fields: Record<string, unknown>): Record<string, unknown> {
    return Object.fromEntries(Object.entries(fields).filter(() => this.below(3) === 0));
  }

  /** Changes, removes or adds up to three values anywhere in the message, which is the caller's no more. */
  mutated(message: object): unknown {
    const whole = { message: message as unknown };
    for (let times = this.below(4); times > 0; times -= 1) this.#mutate(whole);
    return whole.message;
  }

  #anything(): unknown {
    const value = this.oneOf(this.#strange);
    return typeof value === "object" ? structuredClone(value) : value;
  }

  #mutate(whole: object): void {
    const places = placesIn(whole);
    if (places.length === 0) return;
    const [owner, key] = this.oneOf(places);
    const kind = Array.isArray(owner) ? 2 : this.below(4);
    if (kind === 0) delete owner[key];
    else if (kind === 1) owner[`${key}x`] = this.#anything();
    else owner[key] = this.#anything();
  }
}

type Owner = Record<string, unknown>;

function placesIn(owner: object): [Owner, string][] {
  return Object.entries(owner).flatMap(([key, value]) => {
    const place: [Owner, string] = [owner as Owner, key];
    return typeof value === "object" && value !== null ? [place, ...placesIn(value)] : [place];
  });
}
