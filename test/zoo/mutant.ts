// A planted bug: a small change of one file of the product, by text. Applied while bundling (bundle.ts), never to the
// files themselves.

export interface Mutant {
  readonly name: string;
  /** What it breaks, in a sentence. */
  readonly breaks: string;
  /** Under the project's root. */
  readonly file: string;
  /** Each stands in the file exactly once. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly find: string;
  readonly replace: string;
}

/** @throws RangeError when a text to be replaced does not stand there exactly once: the code has moved on */
export function mutated(mutant: Mutant, source: string): string {
  let text = source;
  for (const { find, replace } of mutant.edits) {
    const places = text.split(find).length - 1;
    if (places !== 1)
      throw new RangeError(
        `${mutant.name}: ${JSON.stringify(find)} stands ${places} times in ${mutant.file}`,
      );
    text = text.replace(find, () => replace);
  }
  return text;
}
