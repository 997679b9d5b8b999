// A set of listeners. An event reaches the listeners registered at the start of the delivery.

export class Listeners<Args extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...args: Args) => void>();

  /** @returns a function to remove the listener */
  add(listener: (...args: Args) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  notify(...args: Args): void {
    for (const listener of [...this.#listeners]) listener(...args);
  }
}
