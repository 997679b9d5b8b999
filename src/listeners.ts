// Who wants to be told of something, for as long as each likes. Told are those that listen when the telling begins.

export class Listeners<Told extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...told: Told) => void>();

  /** @returns a function that ends it */
  add(listener: (...told: Told) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(...told: Told): void {
    for (const listener of [...this.#listeners]) listener(...told);
  }
}
