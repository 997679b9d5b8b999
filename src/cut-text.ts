// Cuts text between characters, never between the two halves of a surrogate pair: readers of JSON in other languages
// refuse half a character. Not here: widths on a terminal (cli/table.ts).

/** The beginning of a text: at most `lengthMax` UTF-16 units. @param lengthMax ≥ 0 */
export function headOf(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  return text.slice(0, isInsidePair(text, lengthMax) ? lengthMax - 1 : lengthMax);
}

/** The end of a text: at most `lengthMax` UTF-16 units. @param lengthMax ≥ 0 */
export function tailOf(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const from = text.length - lengthMax;
  return text.slice(isInsidePair(text, from) ? from + 1 : from);
}

function isInsidePair(text: string, at: number): boolean {
  return at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}
