// Finds fields that never had a distinct value. If a field is always 0, false or empty, a comparison of descriptions
// cannot show whether the field was kept or reset.

const nothings: ReadonlySet<string> = new Set(["0", "false", '""', "[]", "{}"]);

export class SeenValues {
  /** By path: the first value, and whether a different value followed. */
  readonly #byPath = new Map<string, { readonly first: string; hasVaried: boolean }>();

  add(described: unknown): void {
    this.#add("", described);
  }

  varies(path: string): boolean {
    return this.#byPath.get(path)?.hasVaried === true;
  }

  /** Paths whose values a reader that forgets the field would also produce. */
  silent(): string[] {
    const isSilent = ({ first, hasVaried }: { first: string; hasVaried: boolean }) =>
      !hasVaried && nothings.has(first);
    return [...this.#byPath].filter(([, seen]) => isSilent(seen)).map(([path]) => path);
  }

  #add(path: string, value: unknown): void {
    this.#note(path, JSON.stringify(value) ?? "");
    if (Array.isArray(value)) for (const item of value) this.#add(`${path}[]`, item);
    else if (typeof value === "object" && value !== null)
      for (const [name, item] of Object.entries(value))
        this.#add(path === "" ? name : `${path}.${name}`, item);
  }

  #note(path: string, text: string): void {
    const known = this.#byPath.get(path);
    if (known === undefined) this.#byPath.set(path, { first: text, hasVaried: false });
    else if (known.first !== text) known.hasVaried = true;
  }
}
