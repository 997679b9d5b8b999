// The twelve rules of the journal's segments hold, as a model, in every searched schedule. Each rule is needed:
// without the rule, the search finds a schedule that breaks a promise.

import { describe, expect, it } from "vitest";
import type { Rule } from "./coordinator.ts";
import { type Setting, searchDeviations, searchSeeds } from "./search.ts";

const inside = { profile: "inside", steps: 500 } as const;

describe("schedules drawn from seeds", () => {
  it.each<[string, Setting]>([
    ["one server that loses power, inside the fault model", { ...inside, store: "one" }],
    ["one server behind other servers, inside the fault model", { ...inside, store: "remote" }],
    ["three replicas, inside the fault model", { ...inside, store: "three" }],
    [
      "one server, outside the fault model: nothing is lost silently",
      { store: "one", profile: "outside", steps: 500 },
    ],
  ])("%s", (_, setting) => {
    expect(searchSeeds(setting, seeds(100))).toEqual([]);
  });
});

it.each<[Setting["store"]]>([["one"], ["remote"], ["three"]])(
  "every schedule with one deviation: %s",
  (store) => {
    const { found, schedules } = searchDeviations({ profile: "inside", steps: 40, store }, 1);
    expect(found).toEqual([]);
    expect(schedules).toBeGreaterThan(300);
  },
);

/** `from`: the seed that `npm run model -- --without RULE` finds first, which keeps the search short. */
describe("a search finds a broken promise without", () => {
  it.each<[Rule, Setting["store"], number]>([
    ["seal-before-reading", "one", 0],
    ["nothing-behind-a-seal", "three", 4835],
    ["compare-with-held", "one", 7],
    ["ask-the-others", "one", 28],
    ["list-again", "three", 39],
    ["growth-is-heartbeat", "three", 301],
    ["seal-the-unopened", "three", 139],
    ["look-after-reconnection", "one", 27],
    ["fresh-answers", "three", 282],
    ["closing-with-nothing-in-flight", "one", 69],
    ["synced-before-deletion", "one", 81],
    ["whole-before-deletion", "one", 49],
    ["inspect-each-timeout", "one", 27],
    ["in-order", "three", 38],
    ["look-after-silence", "remote", 34377],
  ])("%s", (rule, store, from) => {
    expect(searchSeeds({ ...inside, store, without: [rule] }, seeds(50, from))).toHaveLength(1);
  });
});

function seeds(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, at) => from + at);
}
