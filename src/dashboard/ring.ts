// The newest items of a stream, oldest first, in bounded memory.

export class Ring<Item> {
  readonly #kept: number;
  #items: Item[] = [];

  constructor(kept: number) {
    this.#kept = kept;
  }

  /** Amortised: the array is cut when it has grown to twice the kept number. */
  push(item: Item): void {
    this.#items.push(item);
    if (this.#items.length >= 2 * this.#kept) this.#items = this.#items.slice(-this.#kept);
  }

  get size(): number {
    return Math.min(this.#items.length, this.#kept);
  }

  /** Oldest first. @param count the newest only. Default: all that are kept */
  newest(count: number = this.#kept): readonly Item[] {
    const shown = Math.min(count, this.#kept);
    return shown <= 0 ? [] : this.#items.slice(-shown);
  }

  get last(): Item | undefined {
    return this.#items.at(-1);
  }

  clear(): void {
    this.#items = [];
  }
}
