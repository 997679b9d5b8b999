// Which kinds a mistyped one is taken to have meant.

import { expect, it } from "vitest";
import { nearMisses } from "../../src/core/near-miss.ts";
import { kind } from "../../src/ids.ts";

const near = (wanted: string, ...known: string[]) => nearMisses(kind(wanted), known.map(kind));

it.each([
  ["a transposition", "cuont", ["count", "digest"], ["count"]],
  ["a missing letter", "digst", ["count", "digest"], ["digest"]],
  ["another case", "COUNT", ["count"], ["count"]],
  ["the beginning of one", "sum", ["summarize-text"], ["summarize-text"]],
  ["one with an ending more", "outline-v2-beta", ["outline"], ["outline"]],
  ["three letters wrong", "xxxnt", ["count"], []],
  ["nothing known", "count", [], []],
])("a kind with %s is recognised, or not at all", (_, wanted, known, expected) => {
  expect(near(wanted, ...known)).toEqual(expected);
});

it("the nearest come first, then by name, and no more than three", () => {
  expect(near("abcd", "abxy", "abcx", "abce", "abcf", "abcg")).toEqual(["abce", "abcf", "abcg"]);
  expect(near("abcd", "abxy", "abce")).toEqual(["abce", "abxy"]);
});
