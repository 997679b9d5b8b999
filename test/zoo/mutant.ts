// A planted bug: a small change of a product file, by text. Applied while bundling (bundle.ts), never to the files
// themselves.

export interface Mutant {
  readonly name: string;
  /** The consequence of the bug, in a sentence. */
  readonly breaks: string;
  /** Under the project's root. */
  readonly file: string;
  /** Each `find` must occur in the file exactly once. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly find: string;
  readonly replace: string;
}

/** @throws RangeError when a text to replace does not occur exactly once: the code has changed */
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
