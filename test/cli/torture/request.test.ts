// Which seeds a command runs, and in which order.

import { expect, it } from "vitest";
import { commandOf } from "../../../src/cli/torture/report-text.ts";
import { asksFor, requestsOf, type TortureFlags, termsOf } from "../../../src/cli/torture/request.ts";

const terms = { forMs: 60_000, without: [] };

function firstSeeds(flags: TortureFlags, known: readonly number[] = []): number[] {
  const seeds: number[] = [];
  for (const { seed } of requestsOf(flags, terms, new Set(known))) {
    seeds.push(seed);
    if (seeds.length === 3) break;
  }
  return seeds;
}

it.each<[TortureFlags, readonly number[]]>([
  [{}, [0, 1, 2]],
  [{ seed: 7 }, [7]],
  [{ seeds: [4, 5] }, [4, 5]],
  [{ minutes: 1 }, [0, 1, 2]],
  [{ minutes: 1, seed: 5_000 }, [5_000, 5_001, 5_002]],
])("of %j are %j", (flags, seeds) => {
  expect(firstSeeds(flags)).toEqual(seeds);
});

it("run inside the fault model unless the profile is outside, and so are run again", () => {
  const again = (flags: TortureFlags) => commandOf(7, termsOf({ for: 60_000, ...flags }));
  expect(again({})).toBe("waggle torture --seed 7 --for 60s");
  expect(again({ profile: "inside" })).toBe("waggle torture --seed 7 --for 60s");
  expect(again({ profile: "outside" })).toBe("waggle torture --seed 7 --for 60s --profile outside");
});

it("leave out those that are known", () => {
  expect(firstSeeds({ minutes: 1, seed: 5_000 }, [5_000, 5_002])).toEqual([5_001, 5_003, 5_004]);
});

it("of a run by the clock are all from where it begins", () => {
  expect([0, 4, 5, 6].map(asksFor({ minutes: 1, seed: 5 }))).toEqual([false, false, true, true]);
  expect([0, 1].map(asksFor({ minutes: 1 }))).toEqual([true, true]);
  expect([0, 1, 20].map(asksFor({}))).toEqual([true, true, false]);
});
