// The twelve rules of the journal's segments, as a model, hold in every schedule that is searched here; and each rule
// is needed: without it a schedule is found that breaks a promise.

import { describe, expect, it } from "vitest";
import type { Rule } from "./coordinator.ts";
import { type Setting, searchDeviations, searchSeeds } from "./search.ts";

const inside = { profile: "inside", steps: 500 } as const;

describe("schedules drawn from seeds", () => {
  it.each<[string, Setting]>([
    ["one server that loses power, inside the fault model", { ...inside, store: "one" }],
    ["three replicas, inside the fault model", { ...inside, store: "three" }],
    [
      "one server, outside the fault model: nothing is lost silently",
      { store: "one", profile: "outside", steps: 500 },
    ],
  ])("%s", (_, setting) => {
    expect(searchSeeds(setting, seeds(100))).toEqual([]);
  });
});

it.each<[Setting["store"]]>([["one"], ["three"]])("every schedule with one deviation: %s", (store) => {
  const { found, schedules } = searchDeviations({ profile: "inside", steps: 40, store }, 1);
  expect(found).toEqual([]);
  expect(schedules).toBeGreaterThan(300);
});

describe("a search finds what breaks without", () => {
  it.each<[Rule, Setting["store"]]>([
    ["seal-before-reading", "one"],
    ["append-until-sealed", "three"],
    ["compare-with-held", "one"],
    ["ask-the-others", "one"],
    ["list-again", "three"],
    ["one-writer", "one"],
    ["growth-is-life", "three"],
    ["seal-the-unopened", "one"],
    ["fresh-answers", "three"],
    ["closing-with-nothing-in-flight", "one"],
    ["synced-before-deletion", "one"],
    ["whole-before-deletion", "one"],
  ])("%s", (rule, store) => {
    expect(searchSeeds({ ...inside, store, without: [rule] }, seeds(1_000))).toHaveLength(1);
  });
});

function seeds(count: number): number[] {
  return Array.from({ length: count }, (_, seed) => seed);
}
