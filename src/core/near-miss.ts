// Which known kinds a mistyped one may have meant.

import type { Kind } from "../ids.ts";

const SUGGESTIONS_MAX = 3;
const EDITS_MAX = 2;

/** Known kinds within two edits of the wanted one (case aside), or that one is a prefix of; nearest first. */
export function nearMisses(wanted: Kind, known: Iterable<Kind>): Kind[] {
  const target = wanted.toLowerCase();
  const scored: { kind: Kind; distance: number }[] = [];
  for (const kind of known) {
    const distance = distanceBetween(target, kind.toLowerCase());
    if (distance <= EDITS_MAX) scored.push({ kind, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.kind < b.kind ? -1 : 1));
  return scored.slice(0, SUGGESTIONS_MAX).map(({ kind }) => kind);
}

function distanceBetween(a: string, b: string): number {
  if (a.length > 0 && b.length > 0 && (a.startsWith(b) || b.startsWith(a))) return 1;
  return Math.abs(a.length - b.length) > EDITS_MAX ? EDITS_MAX + 1 : levenshtein(a, b);
}

function levenshtein(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
