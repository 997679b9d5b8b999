// Bounds the values of a label: the first names get series of their own, and all further names share one. Without a
// bound, a submitter with a new kind for each task would fill the memory of the coordinator and of Prometheus.

/** The value of all names beyond the bound. */
export const OTHER_NAMES = "_other";

export class BoundedNames<Series> {
  readonly #namesMax: number;
  readonly #make: (name: string) => Series;
  readonly #seriesByName = new Map<string, Series>();
  #others: Series | undefined;

  /** @param namesMax number of names with series of their own
   *  @param make called once for each, and once for all further names */
  constructor(namesMax: number, make: (name: string) => Series) {
    this.#namesMax = namesMax;
    this.#make = make;
  }

  of(name: string): Series {
    const known = this.#seriesByName.get(name);
    if (known !== undefined) return known;
    if (this.#seriesByName.size >= this.#namesMax) {
      this.#others ??= this.#make(OTHER_NAMES);
      return this.#others;
    }
    const series = this.#make(name);
    this.#seriesByName.set(name, series);
    return series;
  }
}
