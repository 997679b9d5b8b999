// Quantiles of the newest values of a stream, in bounded memory.

/** The newest values, at most `kept`. */
export class NewestValues {
  readonly #kept: number;
  #values: number[] = [];
  #next = 0;

  constructor(kept: number) {
    this.#kept = kept;
  }

  add(value: number): void {
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % this.#kept;
  }

  get values(): readonly number[] {
    return this.#values;
  }

  clear(): void {
    this.#values = [];
    this.#next = 0;
  }
}

/** The value below which the `shares` of all values lie (nearest rank); undefined without a value.
 *  @param shares each in (0, 1] */
export function quantiles(
  values: readonly number[],
  shares: readonly number[],
): readonly number[] | undefined {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0);
}
