// Suggestions for a mistyped kind.

import fc from "fast-check";
import { expect, it } from "vitest";
import { kind } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { nearMisses } from "../../src/state/near-miss.ts";

const near = (wanted: string, ...known: string[]) => nearMisses(kind(wanted), known.map(kind));

it.each([
  ["a transposition", "cuont", ["count", "digest"], ["count"]],
  ["a missing letter", "digst", ["count", "digest"], ["digest"]],
  ["another case", "COUNT", ["count"], ["count"]],
  ["the beginning of one", "sum", ["summarize-text"], ["summarize-text"]],
  ["one with an ending more", "outline-v2-beta", ["outline"], ["outline"]],
  ["both letters wrong", "us", ["eu", "a1"], []],
  ["one of two letters wrong", "a2", ["a1", "eu"], ["a1"]],
  ["one letter, as many begin", "c", ["count", "classify", "d"], []],
  ["three letters wrong", "xxxnt", ["count"], []],
  ["nothing known", "count", [], []],
])("a kind with %s is recognised, or not at all", (_, wanted, known, expected) => {
  expect(near(wanted, ...known)).toEqual(expected);
});

it("the nearest come first, then by name, and no more than three", () => {
  expect(near("abcd", "abxy", "abcx", "abce", "abcf", "abcg")).toEqual(["abce", "abcf", "abcg"]);
  expect(near("abcd", "abxy", "abce")).toEqual(["abce", "abxy"]);
});

it("the distance is Levenshtein's as far as two edits and half of the name, by the textbook", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 7 });
  fc.assert(
    fc.property(texts, texts, (a, b) => {
      const isPrefix = a.length > 1 && b.length > 1 && (a.startsWith(b) || b.startsWith(a));
      const editsMax = Math.min(2, Math.max(a.length, b.length) / 2);
      expect(near(a, b)).toEqual(isPrefix || levenshtein(a, b) <= editsMax ? [b] : []);
    }),
    { numRuns: 2_000 },
  );
});

it("long names cost no more than their length", () => {
  const asLongAs = (length: number) => {
    const name = "🐝".repeat(length / 2);
    const known = Array.from({ length: limits.nearMissKindsMax }, (_, n) => `${n}`.padStart(4, "0") + name);
    return () => expect(nearMisses(`0000${name}x`, known)).toHaveLength(3);
  };
  const { short, long } = quickest({ short: asLongAs(100), long: asLongAs(800) });
  // Eight times the length: linear cost grows by 8, quadratic cost by 64. The margin allows for a busy machine.
  expect(long / short).toBeLessThan(24);
});

/** The least disturbed time of each, ms. In turns, so that a disturbance hits both. */
function quickest<Name extends string>(works: Record<Name, () => void>): Record<Name, number> {
  const names = Object.keys(works) as Name[];
  const best = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY])) as Record<
    Name,
    number
  >;
  for (let time = 0; time < 7; time += 1) {
    for (const name of names) {
      const before = performance.now();
      works[name]();
      best[name] = Math.min(best[name], performance.now() - before);
    }
  }
  return best;
}

function levenshtein(a: string, b: string): number {
  if (a === "" || b === "") return a.length + b.length;
  const [tailA, tailB] = [a.slice(1), b.slice(1)];
  if (a[0] === b[0]) return levenshtein(tailA, tailB);
  return 1 + Math.min(levenshtein(tailA, b), levenshtein(a, tailB), levenshtein(tailA, tailB));
}
