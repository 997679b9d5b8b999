// Sorts a list of up to all tasks of a swarm, piece by piece: the caller decides how many steps to take before other
// work runs.

import { limits } from "../../limits.ts";

/** @returns a new list, sorted by `keyOf`, lowest first; stable */
export function* sortInSteps<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => number,
): Generator<undefined, Item[]> {
  let runs: Item[][] = [];
  for (let from = 0; from < items.length; from += limits.baseStepRows) {
    const run = items.slice(from, from + limits.baseStepRows);
    runs.push(run.sort((a, b) => keyOf(a) - keyOf(b)));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(yield* mergeInSteps(runs[at] ?? [], runs[at + 1] ?? [], keyOf));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeInSteps<Item>(
  first: readonly Item[],
  second: readonly Item[],
  keyOf: (item: Item) => number,
): Generator<undefined, Item[]> {
  const merged: Item[] = [];
  let [firstAt, secondAt] = [0, 0];
  while (merged.length < first.length + second.length) {
    const [one, other] = [first[firstAt], second[secondAt]];
    const isOne = other === undefined || (one !== undefined && keyOf(one) <= keyOf(other));
    if (isOne) firstAt += 1;
    else secondAt += 1;
    merged.push((isOne ? one : other) as Item);
    if (merged.length % limits.baseStepRows === 0) yield;
  }
  return merged;
}
