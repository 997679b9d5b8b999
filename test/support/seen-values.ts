// Which fields of what was described ever said something: of one that is always 0, false or empty, a test that compares
// descriptions cannot tell whether it was kept or begun anew.

const nothings: ReadonlySet<string> = new Set(["0", "false", '""', "[]", "{}"]);

export class SeenValues {
  /** By path, what was seen there first, and whether anything else was. */
  readonly #byPath = new Map<string, { readonly first: string; hasVaried: boolean }>();

  add(described: unknown): void {
    this.#add("", described);
  }

  varies(path: string): boolean {
    return this.#byPath.get(path)?.hasVaried === true;
  }

  /** Paths at which nothing ever stood that somebody who forgot the field would not have put there. */
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
