// A set of listeners. An event reaches the listeners registered at the start of the delivery.

export class Listeners<Told extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...told: Told) => void>();

  /** @returns a function to remove the listener */
  add(listener: (...told: Told) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(...told: Told): void {
    for (const listener of [...this.#listeners]) listener(...told);
  }
}
