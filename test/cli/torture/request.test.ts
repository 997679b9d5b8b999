// The seeds of a command, and their order.

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
])("the seeds of %j are %j", (flags, seeds) => {
  expect(firstSeeds(flags)).toEqual(seeds);
});

it("seeds run inside the fault model unless the profile is outside, and the command repeats the profile", () => {
  const again = (flags: TortureFlags) => commandOf(7, termsOf({ for: 60_000, ...flags }));
  expect(again({})).toBe("waggle torture --seed 7 --for 60s");
  expect(again({ profile: "inside" })).toBe("waggle torture --seed 7 --for 60s");
  expect(again({ profile: "outside" })).toBe("waggle torture --seed 7 --for 60s --profile outside");
});

it("seeds already finished are left out", () => {
  expect(firstSeeds({ minutes: 1, seed: 5_000 }, [5_000, 5_002])).toEqual([5_001, 5_003, 5_004]);
});

it("a run by time includes every seed from the first on", () => {
  expect([0, 4, 5, 6].map(asksFor({ minutes: 1, seed: 5 }))).toEqual([false, false, true, true]);
  expect([0, 1].map(asksFor({ minutes: 1 }))).toEqual([true, true]);
  expect([0, 1, 20].map(asksFor({}))).toEqual([true, true, false]);
});
