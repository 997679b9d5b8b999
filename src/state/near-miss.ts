// Suggestions for a mistyped name: kinds, resources, options.

import { limits } from "../limits.ts";

const SUGGESTIONS_MAX = 3;
const EDITS_MAX = 2;
const PREFIX_LENGTH_MIN = 2;

/**
 * Known names near the wanted name, nearest first. A name is near within two edits, ignoring case, that change at most
 * half of the longer name. Of two characters or more, a prefix is near too. Reads the first `limits.nearMissKindsMax`
 * known names.
 */
export function nearMisses<Name extends string>(wanted: Name, known: Iterable<Name>): Name[] {
  const target = wanted.toLowerCase();
  const scored: { name: Name; distance: number }[] = [];
  let seen = 0;
  for (const name of known) {
    seen += 1;
    if (seen > limits.nearMissKindsMax) break;
    const distance = distanceBetween(target, name.toLowerCase());
    const longer = Math.max(target.length, name.length);
    if (distance <= Math.min(EDITS_MAX, longer / 2)) scored.push({ name, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return scored.slice(0, SUGGESTIONS_MAX).map(({ name }) => name);
}

function distanceBetween(a: string, b: string): number {
  if (Math.min(a.length, b.length) >= PREFIX_LENGTH_MIN && (a.startsWith(b) || b.startsWith(a))) return 1;
  if (Math.abs(a.length - b.length) > EDITS_MAX) return EDITS_MAX + 1;
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a.charCodeAt(head) === b.charCodeAt(head)) head += 1;
  let tail = 0;
  const isSameTail = () => a.charCodeAt(a.length - 1 - tail) === b.charCodeAt(b.length - 1 - tail);
  while (tail < shorter - head && isSameTail()) tail += 1;
  // A common head or tail takes no edits.
  return editsBetween(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
}

/**
 * Levenshtein's distance, or `EDITS_MAX` + 1 when the distance is above `EDITS_MAX`. Reads only cells near the
 * diagonal, so that the cost grows with the length and not with its square.
 */
function editsBetween(a: string, b: string): number {
  const beyond = EDITS_MAX + 1;
  // Cell `offset` of a row stands for column row − EDITS_MAX + offset.
  let previous = Array.from({ length: 2 * EDITS_MAX + 1 }, (_, offset) =>
    offset < EDITS_MAX ? beyond : offset - EDITS_MAX,
  );
  for (let row = 1; row <= a.length; row += 1) {
    const current = previous.map(() => beyond);
    for (let offset = 0; offset < current.length; offset += 1) {
      const column = row - EDITS_MAX + offset;
      if (column < 0 || column > b.length) continue;
      const substitution =
        column === 0 ? row : (previous[offset] ?? beyond) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const deletion = (previous[offset + 1] ?? beyond) + 1;
      const insertion = (current[offset - 1] ?? beyond) + 1;
      current[offset] = Math.min(substitution, deletion, insertion, beyond);
    }
    if (current.every((edits) => edits >= beyond)) return beyond;
    previous = current;
  }
  return previous[b.length - a.length + EDITS_MAX] ?? beyond;
}
